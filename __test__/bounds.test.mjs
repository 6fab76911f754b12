/** A hostile service makes the process neither grow without limit nor hang past a call's end. */

import assert from "node:assert/strict";
import test from "node:test";
import { fileURLToPath } from "node:url";
import zlib from "node:zlib";
import { endless, hostile } from "./support/hostile.mjs";
import { program } from "./support/program.mjs";
import { connect, KEY, simulator } from "./support/runloop.mjs";

const caller = fileURLToPath(new URL("bounds/caller.mjs", import.meta.url));
const JSON_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const chunk = (text) => `${text.length.toString(16)}\r\n${text}\r\n`;
const whole = (socket, body, headers = "") => {
  socket.write(`${JSON_HEAD}${headers}content-length: ${body.length}\r\n\r\n`);
  socket.end(body);
};
const chunked = (socket, beginning, piece) => {
  endless(
    socket,
    chunk(piece),
    `${JSON_HEAD}transfer-encoding: chunked\r\n\r\n${chunk(beginning)}`,
  );
};
const FILL = "x".repeat(60_000);

const is = (method, pattern) => (asked, path) => asked === method && pattern.test(path);
const VIEW = is("GET", /^\/v1\/devboxes\/[^/]+$/);
const LIST = is("GET", /^\/v1\/devboxes$/);
const EXECUTE = is("POST", /\/execute$/);
const CREATE = is("POST", /^\/v1\/devboxes$/);
const DOWNLOAD = is("POST", /\/download_file$/);
const STREAM = is("GET", /\/stream_stdout_updates$/);
const WAIT = is("POST", /\/wait_for_status$/);

/** 200 MB of blanks in a few hundred kilobytes. */
const bomb = zlib.gzipSync(Buffer.alloc(200_000_000, " "));
const sse = (socket, piece, first = "") => {
  endless(socket, piece, `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${first}`);
};

/** Each: the call, the route that is hostile, what it does, and what the call ends with. */
const attacks = {
  "endless headers": [
    "get",
    VIEW,
    (s) => endless(s, `x: ${"y".repeat(500)}\r\n`, "HTTP/1.1 200 OK\r\n"),
    "UNAVAILABLE",
  ],
  "one header without an end": [
    "get",
    VIEW,
    (s) => endless(s, FILL, "HTTP/1.1 200 OK\r\nx: "),
    "UNAVAILABLE",
  ],
  "a status line without an end": ["get", VIEW, (s) => endless(s, "HTTP/1.1 "), "UNAVAILABLE"],
  "interim answers without an end": [
    "get",
    VIEW,
    (s) => trickle(s, "", "HTTP/1.1 100 Continue\r\n\r\n"),
    "UNAVAILABLE",
  ],
  "a JSON body without an end": ["get", VIEW, (s) => chunked(s, '{"id":"', FILL), "PROTOCOL"],
  "an answer to a create without an end": [
    "create",
    CREATE,
    (s) => chunked(s, '{"id":"', FILL),
    "OUTCOME_UNKNOWN",
  ],
  "a length of a petabyte": [
    "get",
    VIEW,
    (s) => endless(s, FILL, `${JSON_HEAD}content-length: 1000000000000000\r\n\r\n`),
    "PROTOCOL",
  ],
  "a length that no number holds": [
    "get",
    VIEW,
    (s) => endless(s, FILL, `${JSON_HEAD}content-length: 99999999999999999999999\r\n\r\n`),
    "UNAVAILABLE",
  ],
  "chunks of a size that no number holds": [
    "get",
    VIEW,
    (s) => endless(s, FILL, `${JSON_HEAD}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n`),
    "UNAVAILABLE",
  ],
  "deep JSON": ["get", VIEW, (s) => whole(s, "[".repeat(10_000_000)), "PROTOCOL"],
  "a bomb in gzip": ["get", VIEW, (s) => whole(s, bomb, "content-encoding: gzip\r\n"), "PROTOCOL"],
  "a list of millions of nothings": [
    "list",
    LIST,
    (s) => whole(s, `{"devboxes":[${"{},".repeat(5_000_000)}{}]}`),
    "PROTOCOL",
  ],
  "an error of millions of nothings": [
    "get",
    VIEW,
    (s) => {
      const body = `[${"[],".repeat(5_000_000)}0]`;
      s.end(`HTTP/1.1 400 No\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    },
    "REJECTED",
  ],
  "numbers out of range": [
    "get",
    VIEW,
    (s) => whole(s, '{"id":"x","create_time_ms":1e999}'),
    "PROTOCOL",
  ],
  "a file longer than it said": ["read", DOWNLOAD, (s) => chunked(s, "x", FILL), "PROTOCOL"],
  "output longer than it said": [
    "output",
    DOWNLOAD,
    (s) => chunked(s, "x", FILL),
    // It finds another way to the output.
    "a value",
  ],
  "an event without an end": [
    "stream",
    STREAM,
    (s) => sse(s, FILL, "data: "),
    "PROTOCOL|incomplete",
  ],
  "data lines without an end": [
    "stream",
    STREAM,
    (s) => sse(s, `data: ${FILL}\n`),
    "PROTOCOL|incomplete",
  ],
  "comments without an end": [
    "stream",
    STREAM,
    (s) => sse(s, `: ${FILL}\n`),
    "PROTOCOL|incomplete",
  ],
  "events that say nothing, without an end": [
    "stream",
    STREAM,
    (s) => sse(s, "data: {}\n\n".repeat(5000)),
    "PROTOCOL|incomplete",
  ],
  "a trickle instead of a result": ["exec", EXECUTE, (s) => trickle(s), "OUTCOME_UNKNOWN"],
  "a trickle instead of a state": ["create", WAIT, (s) => trickle(s), "DEADLINE_EXCEEDED"],
  "a trickle instead of a view": ["create", CREATE, (s) => trickle(s), "OUTCOME_UNKNOWN"],
};

function trickle(
  socket,
  first = `${JSON_HEAD}transfer-encoding: chunked\r\n\r\n`,
  piece = chunk(" "),
) {
  socket.write(first);
  const timer = setInterval(() => socket.write(piece), 20);
  socket.once("close", () => clearInterval(timer));
}

/** What each may take: the largest answer three times, and what an allocator keeps. */
const MAX_GROWN_MB = 120;

const bun = fileURLToPath(new URL("../node_modules/.bin/bun", import.meta.url));

// The hostile service stands on this Node: a server on Bun does not hold back what nobody reads.
test("under each attack a call ends with a typed error, in time and in bounded memory, on Node and on Bun", async (t) => {
  const service = await simulator(t);
  const maker = await connect(t, service, { config: { network: "internet" } });
  const box = await maker.sandboxes.create();
  await box.writeFile("/tmp/large", new Uint8Array(300_000), { overwrite: true });
  const attack = async ({ runtime, attacked: [name, [call, picked, act, expected]] }) => {
    const url = await hostile(t, service, picked, act);
    const env = {
      RUNLOOP_API_KEY: KEY,
      RUNLOOP_BASE_URL: url,
      SANDBOX: JSON.stringify(box.reference),
    };
    const options = { env, timeout: 90_000, runtime };
    const { stdout, stderr, code } = await program([caller, call], options);
    const what = `${name}, ${runtime === bun ? "Bun" : "Node"}: ${stdout}`;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, what);
    t.diagnostic(what);
    const ended = JSON.parse(stdout);
    assert.match(ended.code ?? ended.value, new RegExp(`^(${expected})$`), what);
    assert.ok(ended.grownMB < MAX_GROWN_MB, what);
    assert.ok(ended.seconds < 60, what);
  };
  // Those that wait longest are the last ones.
  const waiting = Object.entries(attacks)
    .reverse()
    .flatMap((attacked) => [process.execPath, bun].map((runtime) => ({ runtime, attacked })));
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await attack(next);
  };
  await Promise.all(Array.from({ length: 8 }, lane));
});
