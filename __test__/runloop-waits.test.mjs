/** Waiting for output and for ports, and killing, through the addon and in a simulated Devbox. */

import assert from "node:assert/strict";
import test from "node:test";
import { requests, sandbox } from "./support/box.mjs";
import { rejection } from "./support/client.mjs";

const internet = { config: { network: "internet" } };

test("a server is started, waited for by its output and by its port, and killed with its group", async (t) => {
  const { box, service, outside } = await sandbox(t, internet);
  const server = await box.processes.start({
    command: `python3 -u -c 'import socket, time
time.sleep(0.3)
s = socket.create_server(("127.0.0.1", 8123))
print("listening on", s.getsockname()[1])
while True: s.accept()'`,
  });
  await service.clearJournal();
  assert.deepEqual(await box.waitForPort(8123, { timeoutSeconds: 60 }), {
    port: 8123,
    address: "loopback",
  });
  assert.deepEqual(await requests(service), ["execute"]);
  const { groups } = await server.waitForOutput(/listening on (?<port>\d+)/, {
    timeoutSeconds: 60,
  });
  assert.equal(groups.port, "8123");
  const reading = server.stdout.text();
  await server.kill();
  assert.equal((await server.wait()).exitCode, 137);
  assert.equal(await reading, "listening on 8123\n");
  // A kill of what has ended is a success.
  await server.kill();
  const late = await rejection(box.waitForPort(8123, { timeoutSeconds: 0.2 }));
  assert.equal(late.code, "DEADLINE_EXCEEDED");
  await outside.assertClean();
});

test("an aborted wait for a port ends its command in the sandbox", async (t) => {
  const { box, outside } = await sandbox(t);
  const error = await rejection(box.waitForPort(8124, { signal: AbortSignal.timeout(300) }));
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.cause.name, "TimeoutError");
  assert.equal(error.operation, "port_wait");
  await outside.assertClean("/proc/net/tcp");
});

test("a kill is sent once, and a lost answer to it is an unknown outcome", async (t) => {
  const { box, service } = await sandbox(t);
  const process = await box.processes.start({ command: "sleep 600" });
  await service.fault({
    match: { path: "/v1/devboxes/*/executions/*/kill", count: 1 },
    action: { type: "drop_reply" },
  });
  const error = await rejection(process.kill());
  assert.equal(error.code, "OUTCOME_UNKNOWN");
  assert.equal(error.operation, "process_kill");
  assert.equal(error.outcome.killed, "unknown");
  assert.equal(error.outcome.process.id, process.reference.id);
  const kills = (await requests(service)).filter((each) => each === "kill");
  assert.equal(kills.length, 1);
  assert.equal((await process.wait()).exitCode, 137);
});
