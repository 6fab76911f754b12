/** Settings through the addon: what goes out for each, what is refused, and what comes back otherwise. */

import assert from "node:assert/strict";
import test from "node:test";
import { runloop } from "@beachside/runloop";
import { Beachside, Image } from "beachside";
import { rejection } from "./support/client.mjs";
import { connect, count, KEY, runloopClient, simulator } from "./support/runloop.mjs";

const CREATE = { method: "POST", path: "/v1/devboxes", count: 1 };

/** The body of the one create that settings make. */
async function created(t, service, config, options) {
  const client = await connect(t, service, { config: { network: "internet", ...config } });
  await service.clearJournal();
  const box = await client.sandboxes.create(options);
  const { entries } = await service.journal();
  const { body } = entries.find((each) => each.method === "POST" && each.path === "/v1/devboxes");
  return { client, box, body, launch: body.launch_parameters };
}

/** That connecting with each of these is refused, with a message of this form, and nothing is sent. */
async function refuses(t, settings) {
  const service = await simulator(t);
  for (const [config, code, message] of settings) {
    const adapter = runloop({ apiKey: KEY, baseUrl: service.url, ...config });
    const error = await rejection(Beachside.connect(adapter), JSON.stringify(config));
    assert.equal(error.code, code, `${JSON.stringify(config)}: ${error}`);
    assert.match(error.message, message);
  }
  assert.deepEqual((await service.journal()).lines, []);
}

test("[R8] the smallest size that covers both minima is asked for; either may be left out", async (t) => {
  const service = await simulator(t);
  const sizes = [
    [{ vcpus: 0.5 }, "X_SMALL"],
    [{ memoryMiB: 1025 }, "SMALL"],
    [{ vcpus: 1, memoryMiB: 4096 }, "MEDIUM"],
    [{ vcpus: 2, memoryMiB: 4097 }, "LARGE"],
    [{ vcpus: 2.5 }, "X_LARGE"],
    [{ vcpus: 8, memoryMiB: 32_768 }, "XX_LARGE"],
    [{ vcpus: 8, memoryMiB: 32_769 }, "CUSTOM_SIZE", 16, 64],
    [{ vcpus: 8.5 }, "CUSTOM_SIZE", 16, 32],
    [{ vcpus: 0.5, memoryMiB: 65_536 }, "CUSTOM_SIZE", 16, 64],
    [undefined, undefined],
    [{}, undefined],
  ];
  for (const [resources, name, cpus, memory] of sizes) {
    const { box, launch } = await created(t, service, { resources });
    const shown = JSON.stringify(resources);
    assert.equal(launch.resource_size_request, name, shown);
    assert.equal(launch.custom_cpu_cores, cpus, shown);
    assert.equal(launch.custom_gb_memory, memory, shown);
    assert.deepEqual((await box.inspect()).differences, []);
  }
});

test("[R8] [R9] [R10] [R11] settings out of range, of a wrong type or that exclude each other are refused by name at connect", async (t) => {
  await refuses(t, [
    [{ resources: { vcpus: 16.5 } }, "UNSUPPORTED", /16 vCPU/],
    [{ resources: { memoryMiB: 65_537 } }, "UNSUPPORTED", /65536 MiB/],
    [{ resources: { vcpus: 0 } }, "INVALID_ARGUMENT", /resources\.vcpus/],
    [{ resources: { memoryMiB: "8192" } }, "INVALID_ARGUMENT", /resources\.memoryMiB/],
    [{ resources: { cpus: 1 } }, "INVALID_ARGUMENT", /"cpus".*"vcpus"/],
    [{ lifecycle: { lifetimeSeconds: 59 } }, "INVALID_ARGUMENT", /lifetimeSeconds.*60/],
    [{ lifecycle: { lifetimeSeconds: 172_801 } }, "INVALID_ARGUMENT", /172800/],
    [{ lifecycle: { lifetimeSeconds: 60.5 } }, "INVALID_ARGUMENT", /lifetimeSeconds/],
    [{ lifecycle: { idleSeconds: 0 } }, "INVALID_ARGUMENT", /idleSeconds/],
    [{ lifecycle: { idleSeconds: 172_801 } }, "INVALID_ARGUMENT", /idleSeconds/],
    [{ lifecycle: { idleSeconds: 60, lifetimeSeconds: 60 } }, "INVALID_ARGUMENT", /idleSeconds/],
    [{ preview: { access: "private" } }, "INVALID_ARGUMENT", /preview\.access/],
    [{ image: "" }, "INVALID_ARGUMENT", /image/],
    [{ image: "a\nb" }, "INVALID_ARGUMENT", /image/],
    [{ image: 7 }, "INVALID_ARGUMENT", /image/],
    [{ timeouts: { startSeconds: 0 } }, "INVALID_ARGUMENT", /timeouts\.startSeconds/],
  ]);
});

test("[R9] the lifetime is 900 s, or what is configured, or what one create asks for", async (t) => {
  const service = await simulator(t);
  const plain = await created(t, service, {});
  assert.equal(plain.launch.keep_alive_time_seconds, 900);
  assert.equal(plain.launch.after_idle, undefined);
  const lifecycle = { lifetimeSeconds: 172_800 };
  const { client, launch, box } = await created(t, service, { lifecycle });
  assert.equal(launch.keep_alive_time_seconds, 172_800);
  const short = await client.sandboxes.create({ lifecycle: { lifetimeSeconds: 60 } });
  assert.deepEqual((await short.inspect()).lifecycle, { lifetimeSeconds: 60, idleSeconds: null });
  const { snapshot } = await box.snapshot();
  const restored = await snapshot.restore({ lifecycle: { lifetimeSeconds: 120 } });
  assert.equal((await restored.inspect()).lifecycle.lifetimeSeconds, 120);
  await service.clearJournal();
  for (const lifetimeSeconds of [59, 172_801]) {
    const override = { lifecycle: { lifetimeSeconds } };
    for (const call of [
      () => client.sandboxes.create(override),
      () => snapshot.restore(override),
    ]) {
      const error = await rejection(call());
      assert.equal(error.code, "INVALID_ARGUMENT");
      assert.match(error.message, /lifetimeSeconds/);
    }
  }
  assert.deepEqual((await service.journal()).lines, []);
  await service.advance(61);
  assert.equal((await short.inspect()).state, "destroyed");
});

test("[R10] idleSeconds goes out alone, suspends, and a lifetime beside it is refused", async (t) => {
  const service = await simulator(t);
  const { client, box, launch } = await created(t, service, { lifecycle: { idleSeconds: 60 } });
  assert.equal(launch.keep_alive_time_seconds, undefined);
  assert.deepEqual(launch.after_idle, { idle_time_seconds: 60, on_idle: "suspend" });
  const override = { lifecycle: { lifetimeSeconds: 120 } };
  const error = await rejection(client.sandboxes.create(override));
  assert.equal(error.code, "UNSUPPORTED");
  assert.equal(await count(service, "POST /v1/devboxes"), 1);
  await service.advance(61);
  assert.match((await box.inspect()).state, /^suspend/);
});

test("[R13] create-time env becomes the Devbox's variables and is in no reference or inspection", async (t) => {
  const service = await simulator(t);
  const env = { GREETING: "good day", ODD: "a\n'\"$`\\ü" };
  const { box, body } = await created(t, service, {}, { env });
  assert.deepEqual(body.environment_variables, env);
  const { stdout } = await box.exec('printf %s "$GREETING|$ODD"');
  assert.equal(new TextDecoder().decode(stdout), `${env.GREETING}|${env.ODD}`);
  assert.doesNotMatch(JSON.stringify([box, await box.inspect()]), /good day/);
});

async function blueprint(service, name, set_up = "true") {
  const response = await fetch(`${service.url}/v1/blueprints`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ name, system_setup_commands: [set_up] }),
  });
  const made = await response.json();
  for (;;) {
    const url = `${service.url}/v1/blueprints/${made.id}`;
    const looked = await fetch(url, { headers: { authorization: `Bearer ${KEY}` } });
    const { status } = await looked.json();
    if (status === "build_complete" || status === "failed") return made;
    await new Promise((go) => setTimeout(go, 20));
  }
}

test("[R7] an image is a blueprint by id where one has it, else a name that the service resolves", async (t) => {
  const service = await simulator(t);
  const made = await blueprint(service, "prepared-tools", "echo prepared > /home/user/mark");
  for (const [image, sent] of [
    [made.id, { blueprint_id: made.id }],
    ["prepared-tools", { blueprint_name: "prepared-tools" }],
    [Image.prepared("prepared-tools"), { blueprint_name: "prepared-tools" }],
  ]) {
    const { box, body } = await created(t, service, { image });
    assert.equal(body.blueprint_id, sent.blueprint_id);
    assert.equal(body.blueprint_name, sent.blueprint_name);
    assert.equal((await box.inspect()).image, made.id);
    assert.equal(await box.readTextFile("/home/user/mark"), "prepared\n");
  }
  const { body, box } = await created(t, service, { image: "runloop-default" });
  assert.deepEqual([body.blueprint_id, body.blueprint_name], [undefined, undefined]);
  assert.equal((await box.inspect()).image, null);
});

test("[R7] an image that is unknown, failed or deleted is a clear error that names it, and no box is left", async (t) => {
  const service = await simulator(t);
  const gone = await blueprint(service, "gone-tools");
  await fetch(`${service.url}/v1/blueprints/${gone.id}/delete`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: "{}",
  });
  const failed = await blueprint(service, "broken-tools", "exit 3");
  const images = ["nobody/has?this#name", gone.id, "gone-tools", failed.id, "broken-tools"];
  for (const image of images) {
    const client = await connect(t, service, { config: { network: "internet", image } });
    const error = await rejection(client.sandboxes.create(), image);
    assert.match(error.code, /^(NOT_FOUND|REJECTED)$/, `${image}: ${error}`);
    assert.ok(error.message.includes(image), `${image}: ${error.message}`);
    assert.equal(error.resource.kind, "image");
  }
  const { devboxes } = await service.control("GET", "/devboxes");
  assert.deepEqual(devboxes, []);
});

test("what the service reports otherwise than it was asked for stands in inspect().differences", async (t) => {
  const { service } = await runloopClient(t);
  const client = await connect(t, service, { config: { resources: { vcpus: 2 } } });
  const plain = await client.sandboxes.create();
  assert.deepEqual((await plain.inspect()).differences, []);
  const set = {
    "/launch_parameters/resource_size_request": "X_SMALL",
    "/launch_parameters/keep_alive_time_seconds": 60,
    "/tunnel/auth_mode": "open",
  };
  const id = plain.reference.id;
  const edit = { type: "edit_reply", set };
  await service.fault({ match: { method: "GET", path: `/v1/devboxes/${id}` }, action: edit });
  const { differences } = await plain.inspect();
  assert.deepEqual(differences, [
    { setting: "resources.size", requested: "MEDIUM", reported: "X_SMALL" },
    { setting: "lifecycle.lifetimeSeconds", requested: 900, reported: 60 },
    { setting: "preview.access", requested: "authenticated", reported: "open" },
  ]);
  // What was asked is known to the connection that asked.
  const other = await connect(t, service);
  const reopened = await other.sandboxes.get(plain.reference);
  assert.deepEqual((await reopened.inspect()).differences, []);
});

test("an id, a time or metadata that the service sends in a wrong form is no crash", async (t) => {
  const { client, service } = await runloopClient(t);
  for (const [edit, expected] of [
    [{ remove: ["/id"] }, "OUTCOME_UNKNOWN"],
    [{ set: { "/id": 7 } }, "OUTCOME_UNKNOWN"],
    [{ set: { "/create_time_ms": 1e300 } }, "running"],
    [{ set: { "/create_time_ms": "soon" } }, "OUTCOME_UNKNOWN|running"],
    [{ set: { "/metadata": null } }, "running"],
  ]) {
    await service.fault({ match: CREATE, action: { type: "edit_reply", ...edit } });
    const seen = await client.sandboxes.create().then(
      async (box) => (await box.inspect()).state,
      ({ code }) => code,
    );
    assert.match(seen, new RegExp(`^(${expected})$`), JSON.stringify(edit));
  }
});
