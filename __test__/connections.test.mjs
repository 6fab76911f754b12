// How the addon reaches a service: certificates, proxies, and HTTP/2 that fails.
//
// Certificates and proxies are read from the environment of a process, so each
// case is a process of its own, on the runtime that runs the tests.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import path from "node:path";
import test from "node:test";
import { program } from "./support/program.mjs";
import { startProxy } from "./support/proxy.mjs";
import { KEY, simulator } from "./support/runloop.mjs";

const scale = Number(process.env.TEST_SCALE ?? 1);

/** Nothing of the machine's own settings. */
const NEUTRAL = Object.fromEntries(
  [
    ...["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"],
    ...["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"].flatMap((name) => [
      name,
      name.toLowerCase(),
    ]),
  ].map((name) => [name, undefined]),
);

async function run(file, env, timeout = 100_000) {
  const { stdout, stderr } = await program([`__test__/connections/${file}.mjs`], {
    env: { ...NEUTRAL, RUNLOOP_API_KEY: KEY, ...env },
    timeout,
  });
  assert.ok(stdout.startsWith("{"), stderr);
  assert.ok(!`${stdout}${stderr}`.includes(KEY), "the key was printed");
  return JSON.parse(stdout);
}

const once = (env) => run("once", env);
const works = { printed: "here\n" };

/** Fails with a sentence that has all of this. */
async function fails(env, ...parts) {
  const error = await once(env);
  assert.equal(error.code, "UNAVAILABLE", JSON.stringify(error));
  for (const part of [env.RUNLOOP_BASE_URL, ...parts]) {
    assert.ok(error.message.includes(part), `${error.message} lacks ${part}`);
  }
  assert.ok(!error.message.includes("hunter2"), error.message);
  return error;
}

test("a private authority is trusted by NODE_EXTRA_CA_CERTS, SSL_CERT_FILE and SSL_CERT_DIR, and by nothing else", async (t) => {
  const { url, ca } = await simulator(t, { tls: true });
  const RUNLOOP_BASE_URL = url;
  await Promise.all([
    once({ RUNLOOP_BASE_URL, NODE_EXTRA_CA_CERTS: ca }).then((got) => assert.deepEqual(got, works)),
    once({ RUNLOOP_BASE_URL, SSL_CERT_FILE: ca }).then((got) => assert.deepEqual(got, works)),
    once({ RUNLOOP_BASE_URL, SSL_CERT_DIR: path.dirname(ca) }).then((got) =>
      assert.deepEqual(got, works),
    ),
    fails({ RUNLOOP_BASE_URL }, "UnknownIssuer", "NODE_EXTRA_CA_CERTS"),
  ]);
});

test("a machine without certificates speaks http, and https by the list that is compiled in", async (t) => {
  const { url, plainUrl, ca } = await simulator(t, { tls: true });
  const bare = { SSL_CERT_FILE: "/nonexistent", SSL_CERT_DIR: "/nonexistent" };
  await Promise.all([
    once({ ...bare, RUNLOOP_BASE_URL: plainUrl }).then((got) => assert.deepEqual(got, works)),
    once({ ...bare, RUNLOOP_BASE_URL: url, NODE_EXTRA_CA_CERTS: ca }).then((got) =>
      assert.deepEqual(got, works),
    ),
    fails({ ...bare, RUNLOOP_BASE_URL: url }, "UnknownIssuer", "NODE_EXTRA_CA_CERTS"),
  ]);
});

test("a certificate that is expired or of another host is refused with a sentence that says what to do", async (t) => {
  const start = (kind) => simulator(t, { tls: true, more: ["--tls-certificate", kind] });
  const [expired, wrong] = await Promise.all([start("expired"), start("wrong-name")]);
  const trusting = ({ url, ca }) => ({ RUNLOOP_BASE_URL: url, NODE_EXTRA_CA_CERTS: ca });
  const errors = await Promise.all([
    fails(trusting(expired), "certificate expired", "has to be renewed there"),
    fails(trusting(wrong), "wrong.invalid", "check the host of the base URL"),
  ]);
  // Neither gets better by trying again.
  assert.deepEqual(
    errors.map(({ attempts }) => attempts ?? 1),
    [1, 1],
  );
});

test("a host that is not found, not there or not secure is named, with what to check", async (t) => {
  const plain = createServer((socket) => {
    socket
      .on("error", () => {})
      .resume()
      .end("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  await new Promise((resolve) => plain.listen(0, "127.0.0.1", resolve));
  t.after(() => new Promise((resolve) => plain.close(resolve)));
  await Promise.all([
    fails({ RUNLOOP_BASE_URL: "https://no-such-host.invalid" }, "the host name was not found"),
    fails({ RUNLOOP_BASE_URL: "https://127.0.0.1:1" }, "nothing listens there"),
    fails({ RUNLOOP_BASE_URL: `https://127.0.0.1:${plain.address().port}` }, "does not speak TLS"),
  ]);
});

test("a proxy carries everything, with its credentials, and never sees the key", async (t) => {
  const { url, ca } = await simulator(t, { tls: true });
  const { port } = new URL(url);
  const open = await startProxy(t, { port });
  const closed = await startProxy(t, { port, credentials: "us er:p@ss" });
  // A name that only the proxy can lead anywhere.
  const beyond = { RUNLOOP_BASE_URL: "https://simulator.test", NODE_EXTRA_CA_CERTS: ca };
  const withCredentials = closed.url.replace("//", "//us%20er:p%40ss@");
  const all = [
    { HTTPS_PROXY: open.url },
    { https_proxy: open.url },
    { ALL_PROXY: open.url },
    { HTTPS_PROXY: withCredentials },
    { HTTPS_PROXY: open.url, NO_PROXY: "other.test,10.0.0.0/8" },
  ];
  const got = await Promise.all(all.map((env) => once({ ...beyond, ...env })));
  assert.deepEqual(
    got,
    all.map(() => works),
  );
  for (const { line, head } of [...open.asked, ...closed.asked]) {
    assert.equal(line, "CONNECT simulator.test:443 HTTP/1.1");
    assert.ok(!head.includes(KEY), "the proxy saw the key");
  }
  assert.ok(open.asked.every(({ credentials }) => credentials === undefined));
  assert.ok(closed.asked.every(({ credentials }) => credentials === "us er:p@ss"));
});

test("what NO_PROXY names is reached without the proxy", async (t) => {
  const proxy = await startProxy(t, { port: 1 });
  const forms = ["simulator.test", ".test", "test", "*", "a, simulator.test"];
  const beyond = { RUNLOOP_BASE_URL: "https://simulator.test", HTTPS_PROXY: proxy.url };
  await Promise.all(
    forms.map((NO_PROXY) => fails({ ...beyond, NO_PROXY }, "the host name was not found")),
  );
  assert.deepEqual(proxy.asked, []);
});

test("loopback is never proxied", async (t) => {
  const { url, plainUrl, ca } = await simulator(t, { tls: true });
  const proxy = await startProxy(t, { port: 1 });
  const proxies = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url, ALL_PROXY: proxy.url };
  const urls = [url, plainUrl, plainUrl.replace("127.0.0.1", "localhost")];
  const got = await Promise.all(
    urls.map((RUNLOOP_BASE_URL) => once({ ...proxies, RUNLOOP_BASE_URL, NODE_EXTRA_CA_CERTS: ca })),
  );
  assert.deepEqual(
    got,
    urls.map(() => works),
  );
  assert.deepEqual(proxy.asked, []);
});

test("a proxy that refuses, is not there or cannot be used is named without its credentials", async (t) => {
  const closed = await startProxy(t, { port: 1, credentials: "u:p" });
  const strict = await startProxy(t, { answer: "HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n" });
  const RUNLOOP_BASE_URL = "https://simulator.test";
  const via = (HTTPS_PROXY) => ({ RUNLOOP_BASE_URL, HTTPS_PROXY });
  await Promise.all([
    fails(via(closed.url), "wants a user name and password"),
    fails(via(closed.url.replace("//", "//u:hunter2@")), "does not take those in its URL"),
    fails(via(strict.url), "refused to connect there", "NO_PROXY"),
    fails(via("http://u:hunter2@127.0.0.1:1"), "cannot be reached"),
    fails(via("http://u:hunter2@no-proxy.invalid:3128"), "cannot be reached"),
    fails(via("socks5://u:hunter2@127.0.0.1:1"), "must have an http or https URL"),
  ]);
  // Once for each process: a wrong password that is repeated locks people out.
  assert.equal(closed.asked.length, 2);
});

test("[R29] whatever HTTP/2 does, a mutation is sent once and a read gets through", async (t) => {
  const { url, plainUrl, ca } = await simulator(t, { tls: true });
  // Each with what becomes of a mutation, and how often the service acted on it.
  const faults = [
    [{ type: "goaway" }, "works", 1],
    [{ type: "goaway_reply" }, "OUTCOME_UNKNOWN", 1],
    [{ type: "goaway_reply", code: "enhance_your_calm" }, "OUTCOME_UNKNOWN", 1],
    [{ type: "goaway_request" }, "OUTCOME_UNKNOWN", 0],
    [{ type: "reset_request", code: "refused_stream" }, "OUTCOME_UNKNOWN", 0],
    [{ type: "reset_reply", code: "refused_stream" }, "OUTCOME_UNKNOWN", 1],
    [{ type: "reset_reply", code: "internal_error" }, "OUTCOME_UNKNOWN", 1],
    [{ type: "reset_reply", code: "cancel" }, "OUTCOME_UNKNOWN", 1],
    [{ type: "drop_reply", reset: true }, "OUTCOME_UNKNOWN", 1],
    [{ type: "truncate_reply", bytes: 10 }, "OUTCOME_UNKNOWN", 1],
    // Costs the whole silence that an execute may have.
    ...(scale > 1 ? [[{ type: "stall_reply", bytes: 10 }, "OUTCOME_UNKNOWN", 1]] : []),
    [{ type: "close_idle", milliseconds: 1 }, "works", 1],
  ];
  const { results } = await run("hostile", {
    RUNLOOP_BASE_URL: url,
    NODE_EXTRA_CA_CERTS: ca,
    CONTROL: plainUrl,
    FAULTS: JSON.stringify(faults.map(([action]) => action)),
  });
  assert.equal(results.length, faults.length);
  for (const [index, result] of results.entries()) {
    const of = JSON.stringify(result);
    const [, outcome, acted] = faults[index];
    assert.deepEqual(result.create, { outcome, sent: 1, version: "2", tls: true }, of);
    assert.equal(result.exec.outcome, outcome, of);
    // Never twice. Further scripts than the command are the adapter's own.
    assert.equal(result.ran, acted, of);
    assert.equal(result.read.outcome, "works", of);
    assert.equal(result.read.sent, outcome === "works" ? 1 : 2, of);
  }
});

test("[D11] a stream whose HTTP/2 stream or connection ends goes on where it was", async (t) => {
  const { url, plainUrl, ca } = await simulator(t, { tls: true });
  const faults = [
    { type: "sse", cut_at_byte: 5000 },
    { type: "goaway" },
    { type: "sse", cut_at_byte: 9000, chunk_bytes: 100 },
    { type: "reset_request", code: "refused_stream" },
    { type: "goaway_request" },
  ];
  const result = await run("stream", {
    RUNLOOP_BASE_URL: url,
    NODE_EXTRA_CA_CERTS: ca,
    CONTROL: plainUrl,
    FAULTS: JSON.stringify(faults),
  });
  assert.deepEqual(result, { isWhole: true, ended: { exitCode: 0, output: "complete" } });
});

test("many commands that hold long polls leave room for a read", async (t) => {
  const COUNT = `${Math.min(1000, 100 * scale)}`;
  const { url, plainUrl, ca } = await simulator(t, {
    tls: true,
    settings: { http2_max_concurrent_streams: 100 },
  });
  const env = { RUNLOOP_BASE_URL: url, NODE_EXTRA_CA_CERTS: ca, CONTROL: plainUrl, COUNT };
  const { median, p99, printed } = await run("crowd", env);
  t.diagnostic?.(`${COUNT} commands: a read took ${median} ms at the median, ${p99} ms at p99`);
  assert.deepEqual(printed, ["through\n"]);
  assert.ok(median < 50, `${median} ms at the median`);
  assert.ok(p99 < 500, `${p99} ms at p99`);
});

test("where a connection takes eight calls, two hundred commands that wait all end, and a read gets through", async (t) => {
  const { url, plainUrl, ca } = await simulator(t, {
    tls: true,
    settings: { http2_max_concurrent_streams: 8 },
  });
  const env = { RUNLOOP_BASE_URL: url, NODE_EXTRA_CA_CERTS: ca, CONTROL: plainUrl, COUNT: "200" };
  const { median, p99, printed } = await run("crowd", env);
  t.diagnostic?.(`200 commands: a read took ${median} ms at the median, ${p99} ms at p99`);
  assert.deepEqual(printed, ["through\n"]);
  assert.ok(median < 250, `${median} ms at the median`);
});
