import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import test from "node:test";
import { memoryClient, rejection } from "./support/client.mjs";

async function sandbox(t) {
  const memory = await memoryClient(t);
  const box = await memory.client.sandboxes.create();
  memory.world.calls.length = 0;
  return { ...memory, box };
}

/** A server of this machine, where the in-memory provider's commands run. */
async function listening(t, host, port = 0) {
  const server = createServer().listen(port, host);
  t.after(() => server.close());
  await once(server, "listening");
  return server.address().port;
}

/** A port on which nothing listens: the kernel gave it, and it was closed again. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("waitForPort says on which addresses a port is listened on, with one command", async (t) => {
  const { box, world } = await sandbox(t);
  for (const [host, address] of [
    ["127.0.0.1", "loopback"],
    ["127.0.0.2", "loopback"],
    ["::1", "loopback"],
    ["0.0.0.0", "any"],
    ["::", "any"],
  ]) {
    const port = await listening(t, host);
    assert.deepEqual(await box.waitForPort(port), { port, address }, host);
  }
  assert.deepEqual(world.methods, ["exec", "exec", "exec", "exec", "exec"]);
});

test("waitForPort loops inside the sandbox until something listens", async (t) => {
  const { box, world } = await sandbox(t);
  const port = await freePort();
  const waiting = box.waitForPort(port, { intervalSeconds: 0.05 });
  await world.arrival("exec");
  await listening(t, "127.0.0.1", port);
  assert.deepEqual(await waiting, { port, address: "loopback" });
  assert.deepEqual(world.methods, ["exec"]);
});

test("a connection from a port is not a listener on it", async (t) => {
  const { box } = await sandbox(t);
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { connect } = await import("node:net");
  const socket = connect(server.address().port, "127.0.0.1");
  t.after(() => socket.destroy());
  await once(socket, "connect");
  const error = await rejection(box.waitForPort(socket.localPort, { timeoutSeconds: 0.1 }));
  assert.equal(error.code, "DEADLINE_EXCEEDED");
});

test("waitForPort ends with its time limit and with its signal", async (t) => {
  const { box } = await sandbox(t);
  const port = await freePort();
  const late = await rejection(box.waitForPort(port, { timeoutSeconds: 0.2 }));
  assert.equal(late.code, "DEADLINE_EXCEEDED");
  assert.equal(late.operation, "port_wait");
  assert.match(late.message, /Nothing listened on port \d+ of the sandbox within 0\.2 seconds/);
  const controller = new AbortController();
  const reason = new Error("enough");
  const stopped = rejection(
    box.waitForPort(port, { timeoutSeconds: 1, signal: controller.signal }),
  );
  setImmediate(() => controller.abort(reason));
  const error = await stopped;
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.cause, reason);
  assert.equal(error.outcome, undefined);
});

test("a lost command is a failed look, not an unknown outcome", async (t) => {
  const { box, world } = await sandbox(t);
  const { BeachsideError } = await import("beachside");
  world.fail("exec", new BeachsideError("lost", { code: "OUTCOME_UNKNOWN", requestId: "r1" }));
  const error = await rejection(box.waitForPort(80));
  assert.equal(error.code, "UNAVAILABLE");
  assert.equal(error.requestId, "r1");
});

test("[V27] a look that the end of the connection cuts off rejects with CLOSED, like every read", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  world.hold("exec");
  const waiting = rejection(box.waitForPort(80));
  await world.arrival("exec");
  await client.close();
  assert.equal((await waiting).code, "CLOSED");
});

test("wrong arguments of waitForPort are refused by name before anything is sent", async (t) => {
  const { box, world } = await sandbox(t);
  for (const [port, options, message] of [
    [0, undefined, /port must be a whole number from 1 to 65535/],
    ["80", undefined, /port must be/],
    [80, { timeoutSeconds: 3501 }, /timeoutSeconds must be/],
    [80, { intervalSeconds: 0 }, /intervalSeconds must be/],
    [80, { interval: 1 }, /unknown key "interval"/],
  ]) {
    const error = await rejection(box.waitForPort(port, options));
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, message);
  }
  assert.deepEqual(world.calls, []);
});

test("the look works in every shell of this machine, without any program, and without a table", async (t) => {
  const { box, world } = await sandbox(t);
  const port = await listening(t, "127.0.0.1");
  const closed = await freePort();
  await box.waitForPort(port);
  const [, , script, ...rest] = world.calls.at(-1).request.command;
  const run = (shell, text, hex, number, env = {}) =>
    spawnSync(shell[0], [...shell.slice(1), "-c", text, "sh", hex, number, "0", "0.05"], {
      encoding: "utf8",
      // bash reads its start-up file where its input is a socket.
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, ...env },
    });
  const hex = (each) => each.toString(16).toUpperCase().padStart(4, "0");
  assert.deepEqual(rest.slice(0, 3), ["sh", hex(port), String(port)]);
  const without = script.replaceAll("/proc/net/tcp", "/nonexistent/tcp");
  const shells = [["dash"], ["bash", "--posix"], ["bash"], ["busybox", "sh"]].filter(
    ([program]) => spawnSync(program, ["-c", ":"]).error === undefined,
  );
  assert.ok(shells.length >= 2, "dash and bash are here");
  for (const shell of shells) {
    const found = run(shell, script, hex(port), String(port));
    assert.deepEqual([found.status, found.stdout, found.stderr], [0, "loopback\n", ""], shell[0]);
    const none = run(shell, script, hex(closed), String(closed));
    assert.deepEqual([none.status, none.stdout, none.stderr], [10, "", ""], shell[0]);
    const connected = run(shell, without, hex(port), String(port));
    assert.deepEqual([connected.status, connected.stdout], [0, "unknown\n"], shell[0]);
    const refused = run(shell, without, hex(closed), String(closed));
    assert.deepEqual([refused.status, refused.stdout], [10, ""], shell[0]);
  }
  // Absolute, because there is no PATH to find anything in.
  const bare = ["/bin/sh"];
  const empty = { PATH: "/nonexistent" };
  assert.equal(run(bare, script, hex(port), String(port), empty).stdout, "loopback\n");
  assert.equal(run(bare, without, hex(port), String(port), empty).status, 11);
  const patient = script.replace("limit=$3", "limit=9");
  assert.equal(run(bare, patient, hex(closed), String(closed), empty).status, 12);
});
