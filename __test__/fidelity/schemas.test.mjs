// The schema check itself: what it lets through and what it reports.

import assert from "node:assert/strict";
import { test } from "node:test";
import { entryProblems, mismatches, readEvents, routeOf } from "./schemas/check.mjs";

const SECRET = { id: "sec_1", name: "N", create_time_ms: 1, update_time_ms: 1 };

function answer(fields) {
  return {
    sequence: 1,
    method: "GET",
    path: "/v1/secrets/N",
    status: 200,
    outcome: "answered",
    faults: [],
    response_content_type: "application/json",
    response_body: SECRET,
    ...fields,
  };
}

test("an answer as specified has no problems", () => {
  assert.deepEqual(entryProblems(answer({})), []);
});

for (const [title, fields, problem] of [
  ["a missing field", { response_body: { ...SECRET, id: undefined } }, /required property 'id'/],
  ["an invented field", { response_body: { ...SECRET, value: "x" } }, /additional.*value/],
  [
    "a wrong type",
    { response_body: { ...SECRET, create_time_ms: "1" } },
    /create_time_ms: must be/,
  ],
  ["a status that is not specified", { status: 418 }, /status 418/],
  ["a success that is not 200", { status: 201 }, /status 201/],
  ["an error without a message", { status: 404, response_body: { code: "404" } }, /'message'/],
  ["another content type", { response_content_type: "text/plain" }, /content type/],
  ["an answer that was not kept", { response_body: null }, /not kept/],
  ["an unknown route", { path: "/v1/nothing" }, /no such route/],
  ["a known route's other method", { method: "PUT" }, /no such route/],
]) {
  test(`the schema check reports ${title}`, () => {
    assert.match(entryProblems(answer(fields)).join("\n"), problem);
  });
}

test("the schema check reads into the events of a stream", () => {
  const stream = (text) =>
    answer({
      path: "/v1/devboxes/d/executions/e/stream_stdout_updates",
      response_content_type: "text/event-stream",
      response_body: text,
    });
  assert.deepEqual(entryProblems(stream('data: {"output":"a","offset":1}\n\n: idle\n\n')), []);
  assert.match(entryProblems(stream('data: {"offset":1}\n\n')).join(), /'output'/);
  assert.match(entryProblems(stream('event: error\ndata: {"code":"408"}\n\n')).join(), /'message'/);
  // Cut by a client that left.
  assert.deepEqual(entryProblems(stream('data: {"output":"a"}\n\ndata: {"ou')), []);
});

test("a stream's events are read whole, whatever ends their lines", () => {
  const { chunks, errors } = readEvents(
    'data: {"output":\r\ndata: "a"}\r\n\r\nevent: error\r\ndata: {"message":"m"}\r\n\r\n',
  );
  assert.deepEqual(chunks, [{ output: "a" }]);
  assert.deepEqual(errors, [{ message: "m" }]);
});

test("a literal path is not taken for an id", () => {
  assert.equal(routeOf("POST", "/v1/devboxes/create_and_await_running").schema, "DevboxView");
  assert.equal(routeOf("GET", "/v1/devboxes/disk_snapshots").schema, "DevboxDiskSnapshotListView");
  assert.equal(routeOf("GET", "/v1/devboxes/evictions/watch").contentType, "text/event-stream");
});

test("a journal with holes or unmatched requests is a problem", () => {
  const journal = { entries: [answer({})], dropped: 2, unexpected: ["GET /v1/nothing"] };
  const { checked, problems } = mismatches(journal);
  assert.equal(checked, 1);
  assert.equal(problems.length, 2);
});
