// Terminals: the SDK bootstraps and controls them, a plain WebSocket carries them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { test } from "node:test";
import { Agent, WebSocket } from "undici";
import { viewProblems } from "./schemas/check.mjs";
import { suite } from "./support/suite.mjs";

/** Node does not resolve names below localhost: every one is this machine. */
function lookup(_name, options, callback) {
  if (options.all) callback(null, [{ address: "127.0.0.1", family: 4 }]);
  else callback(null, "127.0.0.1", 4);
}

/** The SDK and a WebSocket client of one Devbox's terminals. */
async function terminals(c, box) {
  const { tunnel_key, auth_token } = await c.api.devboxes.createPtyTunnel(box.id);
  const origin = new URL(c.simulator.url);
  origin.hostname = `13-${tunnel_key}.tunnel.localhost`;
  // WebSockets are upgrades of HTTP/1.1, over TLS too; the SDK follows them there.
  const isTls = origin.protocol === "https:";
  const connect = { lookup, ...(isTls ? { ca: readFileSync(c.simulator.ca) } : {}) };
  const httpAgent = isTls ? new https.Agent(connect) : new http.Agent(connect);
  const { api } = c.client({
    baseURL: origin.origin,
    bearerToken: auth_token,
    http2: false,
    httpAgent,
  });
  const dispatcher = new Agent({ connect });
  const open = (connectUrl) => {
    const url = new URL(connectUrl, origin);
    url.protocol = isTls ? "wss:" : "ws:";
    const socket = new WebSocket(url, { protocols: [auth_token], dispatcher });
    socket.binaryType = "arraybuffer";
    return socket;
  };
  return { pty: api.pty, open };
}

/** An open socket whose text is awaited and whose end is a promise. */
async function attached(socket) {
  const decoder = new TextDecoder();
  let text = "";
  let wake = () => {};
  const ended = new Promise((resolve) => {
    socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }));
  });
  socket.addEventListener("message", ({ data }) => {
    text += decoder.decode(data, { stream: true });
    wake();
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error("the upgrade was refused")));
  });
  return {
    ended,
    type: (line) => socket.send(new TextEncoder().encode(line)),
    close: () => socket.close(),
    async shows(wanted) {
      while (!text.includes(wanted)) {
        await new Promise((resolve) => {
          wake = resolve;
        });
      }
      text = text.slice(text.indexOf(wanted) + wanted.length);
    },
  };
}

suite("terminals", (c) => {
  test("a session is made, found again, resized, signalled and closed", async (t) => {
    const { pty, open } = await terminals(c, await c.box(t));
    const view = await pty.connect("main", { cols: 100, rows: 30 });
    assert.deepEqual(viewProblems("PtyConnectView", view), []);
    assert.deepEqual([view.created, view.attached, view.cols, view.rows], [true, false, 100, 30]);
    const first = await attached(open(view.connect_url));
    first.type("stty size; cd /usr; KEPT=yes\n");
    await first.shows("30 100");

    const again = await pty.connect("main");
    assert.deepEqual([again.created, again.attached], [false, true]);
    await assert.rejects(attached(open(again.connect_url)), /refused/);

    const resized = await pty.control("main", { action: "resize", cols: 90, rows: 20 });
    assert.deepEqual(viewProblems("PtyControlResultView", resized), []);
    first.type("stty size; sh -c 'echo wait\"\"ing; exec sleep 1000'\n");
    await first.shows("20 90");
    await first.shows("waiting");
    await pty.control("main", { action: "signal", signal: "SIGINT" });
    first.type("echo code $?\n");
    await first.shows("code 130");
    first.close();
    await first.ended;

    const second = await attached(open(again.connect_url));
    second.type('echo "$KEPT at $PWD"\n');
    await second.shows("yes at /usr");
    await pty.control("main", { action: "close" });
    assert.equal((await second.ended).code, 4000);
    assert.equal((await pty.connect("main")).created, true);
  });

  test("the end of the shell is told with its exit status", async (t) => {
    const { pty, open } = await terminals(c, await c.box(t));
    const { connect_url } = await pty.connect("main");
    const socket = await attached(open(connect_url));
    socket.type("exit 7\n");
    assert.deepEqual(await socket.ended, { code: 4000, reason: "exit status 7" });
    const dead = { action: "signal", signal: "SIGTERM" };
    await assert.rejects(pty.control("main", dead), { status: 400 });
  });

  test("what is wrong is refused", async (t) => {
    const box = await c.box(t);
    const { pty } = await terminals(c, box);
    await assert.rejects(pty.connect("a.b"), { status: 400 });
    await assert.rejects(pty.control("none", { action: "close" }), { status: 404 });
    await pty.connect("main");
    for (const wrong of [
      { action: "resize", cols: 0, rows: 24 },
      { action: "resize", cols: 80, rows: 1001 },
      { action: "signal", signal: "SIGNONSENSE" },
    ]) {
      await assert.rejects(pty.control("main", wrong), { status: 400 });
    }
    await box.suspend();
    await box.awaitSuspended();
    await assert.rejects(c.api.devboxes.createPtyTunnel(box.id), { status: 400 });
  });
});
