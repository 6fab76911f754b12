/** What listeners hear of a connection, through the addon, and that it holds no secret. */

import assert from "node:assert/strict";
import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import test from "node:test";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";
import { rejection } from "./support/client.mjs";
import { program } from "./support/program.mjs";
import { KEY, simulator } from "./support/runloop.mjs";

/** A client that is traced; `records` grows. */
async function traced(t, service, options = {}) {
  const records = [];
  const client = await Beachside.connect({
    adapter: runloop({ apiKey: KEY, baseUrl: service.url, network: "internet" }),
    trace: (record) => void records.push(record),
    ...options,
  });
  t.after(() => client.close());
  return { client, records };
}

/** Records come after the result of the call, within a turn or two. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

const of = (records, type) => records.filter((record) => record.type === type);

test("a traced connection tells of every request and operation, tied to each other", async (t) => {
  const service = await simulator(t);
  const { client, records } = await traced(t, service);
  await settled();
  assert.deepEqual(
    records.map(({ type, operation, route }) => [type, operation, route]),
    [
      ["request.start", "connect", "/v1/accounts/me"],
      ["request.end", "connect", "/v1/accounts/me"],
    ],
  );
  const box = await client.sandboxes.create();
  await service.clearJournal();
  records.length = 0;
  let reference;
  await box.exec("true", {
    onSubmit(operation) {
      reference = operation;
    },
  });
  await box.inspect();
  await settled();
  const { lines } = await service.journal();
  const starts = of(records, "request.start");
  assert.deepEqual(
    starts.map(({ method, path }) => `${method} ${path}`),
    lines,
  );
  const [submit] = of(records, "operation.submit");
  const [settle] = of(records, "operation.settle");
  for (const record of [submit, settle]) {
    assert.equal(record.operation, "exec");
    assert.equal(record.operationId, reference.operationId);
    assert.deepEqual([record.targetKind, record.targetId], ["sandbox", box.reference.id]);
  }
  assert.equal(settle.code, undefined);
  assert.ok(settle.durationMs >= 0);
  const ends = of(records, "request.end");
  assert.equal(ends.length, starts.length);
  for (const [at, end] of ends.entries()) {
    assert.equal(end.provider, "runloop");
    assert.equal(end.request, starts[at].request);
    assert.equal(end.status, 200);
    assert.equal(end.attempt, 1);
    assert.equal(end.failure, undefined);
    assert.ok(end.requestId.length > 0 && end.durationMs > 0 && end.receivedBytes > 0);
    assert.ok(Math.abs(end.time - Date.now()) < 60_000);
    assert.ok(Object.isFrozen(end));
  }
  assert.deepEqual(
    ends.map((end) => [end.operation, end.operationId, end.route]),
    [
      ["exec", reference.operationId, "/v1/devboxes/{id}/execute"],
      ["sandbox_inspect", undefined, "/v1/devboxes/{id}"],
    ],
  );
});

test("retries, reconnects and failures are told, with their reasons", async (t) => {
  const service = await simulator(t);
  const { client, records } = await traced(t, service);
  const box = await client.sandboxes.create();
  records.length = 0;
  await service.fault({
    match: { method: "GET", path: "/v1/devboxes/*", count: 1 },
    action: { type: "refuse", status: 503 },
  });
  await box.inspect();
  await settled();
  const [retry] = of(records, "retry");
  assert.deepEqual(
    [retry.reason, retry.attempt, retry.operation, retry.route],
    ["status 503", 1, "sandbox_inspect", "/v1/devboxes/{id}"],
  );
  assert.ok(retry.delayMs > 50);
  assert.deepEqual(
    of(records, "request.end").map((end) => [end.status, end.attempt]),
    [
      [503, 1],
      [200, 2],
    ],
  );
  records.length = 0;
  await service.fault({
    match: { path: "/v1/devboxes/*/execute", count: 1 },
    action: { type: "drop_reply" },
  });
  const error = await rejection(box.exec("true"));
  await settled();
  assert.equal(of(records, "operation.settle")[0].code, error.code);
  const [lost] = of(records, "request.end");
  assert.deepEqual([lost.status, lost.failure], [undefined, "reset"]);
  records.length = 0;
  await service.fault({
    match: { path: "/v1/devboxes/*/executions/*/stream_stdout_updates", count: 1 },
    action: { type: "sse", cut_at_byte: 40 },
  });
  const process = await box.processes.start({
    command: "for i in 1 2 3; do echo $i; sleep 0.1; done",
  });
  assert.equal(await process.stdout.text(), "1\n2\n3\n");
  await settled();
  const reconnects = of(records, "reconnect");
  assert.ok(reconnects.length > 0);
  for (const record of reconnects) {
    assert.deepEqual(
      [record.operation, record.stream, record.processId, record.sandboxId],
      ["process_read", "stdout", process.reference.id, box.reference.id],
    );
    assert.ok(record.offset >= 0 && record.reason.length > 0);
  }
});

test("channels are heard from the next call after a subscription, and no longer than it", async (t) => {
  const service = await simulator(t);
  const { client } = await traced(t, service, { trace: undefined });
  const heard = [];
  const listener = (record, name) => void heard.push([name, record.operation]);
  await client.sandboxes.list();
  subscribe("beachside.request.end", listener);
  await client.sandboxes.list();
  await settled();
  unsubscribe("beachside.request.end", listener);
  await client.sandboxes.list();
  await settled();
  assert.deepEqual(heard, [["beachside.request.end", "sandbox_list"]]);
  assert.equal(channel("beachside.request.end").hasSubscribers, false);
});

test("a trace that throws touches no call: it is warned of, and not called again", async (t) => {
  const service = await simulator(t);
  const warned = once(process, "warning");
  let calls = 0;
  const { client } = await traced(t, service, {
    trace() {
      calls += 1;
      throw new Error("mine");
    },
  });
  await client.sandboxes.list();
  const [warning] = await warned;
  assert.equal(warning.code, "BEACHSIDE_CALLBACK");
  await settled();
  assert.equal(calls, 1);
  await assert.rejects(traced(t, service, { trace: "x" }), {
    code: "INVALID_ARGUMENT",
    message: /trace must be a function/,
  });
});

test("[V17] no record, log line, progress, error or inspection holds a secret", async (t) => {
  const service = await simulator(t);
  const { stdout, stderr, code } = await program(["__test__/support/traced-program.mjs"], {
    env: { RUNLOOP_API_KEY: KEY, RUNLOOP_BASE_URL: service.url, BEACHSIDE_LOG: "debug" },
  });
  assert.equal(code, 0, stderr);
  const [, count, tokens, told] = /END (\d+) (\d+) (\w+)/.exec(stdout);
  assert.ok(Number(count) > 100, count);
  assert.deepEqual([tokens, told], ["1", "false"]);
  for (const text of [stdout, stderr]) assert.doesNotMatch(text, new RegExp(`canary|${KEY}`));
  const lines = stderr.trimEnd().split("\n");
  assert.ok(lines.length > 20);
  for (const line of lines) {
    assert.match(
      line,
      /^beachside \d{4}-\d\d-\d\dT[\d:.]+Z [a-z]+(\.[a-z]+)? operation=\w+|^beachside \S+ \S+ request=/,
    );
  }
  assert.match(
    stderr,
    /request\.end request=\d+ operation=exec operationId=\S+ method=POST route=\/v1\/devboxes\/\{id\}\/execute/,
  );
});
