/** The documented example, through the addon, against the simulator. */

import assert from "node:assert/strict";
import test from "node:test";
import { rejection } from "./support/client.mjs";
import { program } from "./support/program.mjs";
import { count, KEY, runloopClient, simulator } from "./support/runloop.mjs";

const environment = (service) => ({ RUNLOOP_BASE_URL: service.url, RUNLOOP_API_KEY: KEY });

test("[R2] the documented example prints ready, because a command ran in a Devbox, and leaves nothing", async (t) => {
  const service = await simulator(t);
  const { stdout, stderr, code } = await program(["examples/quickstart.mjs"], {
    env: environment(service),
  });
  assert.deepEqual({ stdout, stderr, code }, { stdout: "ready\n", stderr: "", code: 0 });
  const { entries } = await service.journal();
  assert.equal(entries.filter((each) => each.path.endsWith("/execute")).length, 1);
  assert.equal(await count(service, "POST /v1/devboxes"), 1);
  assert.equal(await count(service, "POST /v1/devboxes/*/shutdown"), 1);
});

test("[R1] the example runs with every network module of JavaScript and fetch made to throw", async (t) => {
  const service = await simulator(t);
  const preload = ["./__test__/support/no-network.mjs"];
  const { stdout, code } = await program(["examples/quickstart.mjs"], {
    env: environment(service),
    preload,
  });
  assert.deepEqual({ stdout, code }, { stdout: "ready\n", code: 0 });
  for (const attempt of [
    'fetch("http://127.0.0.1:9/")',
    'require("node:http").get("http://127.0.0.1:9/")',
    'require("node:net").connect(9, "127.0.0.1")',
    'new (require("node:net").Socket)().connect(9, "127.0.0.1")',
  ]) {
    const refused = await program(["-e", attempt], { preload });
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /was called/);
  }
});

test("[V27] close ends a call in flight, later calls reject, and nothing keeps the process", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const running = rejection(box.exec(["sleep", "30"]));
  await client.close();
  const cut = await running;
  assert.ok(["OUTCOME_UNKNOWN", "CLOSED"].includes(cut.code), cut.code);
  assert.deepEqual(cut.outcome.sandbox, box.reference);
  await assert.rejects(box.inspect(), { code: "CLOSED" });
  const script = `
    const { runloop } = require("@beachside/runloop");
    const { Beachside } = require("beachside");
    Beachside.connect(runloop({ apiKey: "${KEY}" })).then(async (client) => {
      await client.sandboxes.list();
      if (process.argv.includes("close")) await client.close();
      console.log("end");
    });
  `;
  for (const last of ["close", "leave"]) {
    const ended = await program(["-e", script, last], {
      env: environment(service),
      timeout: 20_000,
    });
    assert.deepEqual([ended.stdout, ended.code, ended.stderr], ["end\n", 0, ""]);
  }
});
