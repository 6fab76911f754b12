/** Previews through the addon: a real web server in a simulated Devbox. */

import assert from "node:assert/strict";
import http from "node:http";
import test from "node:test";
import { openPage } from "./support/browser.mjs";
import { connect, count, runloopClient } from "./support/runloop.mjs";

/** A sandbox whose port 3000 answers with a word. */
async function served(client, word) {
  const box = await client.sandboxes.create();
  await box.exec("mkdir -p /tmp/www", { check: true });
  await box.writeFile("/tmp/www/index.html", word, { overwrite: true });
  await box.exec("busybox httpd -p 127.0.0.1:3000 -h /tmp/www", { check: true });
  return box;
}

/** A GET by the URL's own name, which need not resolve: the simulator's tunnels are on loopback. */
function get(url, headers = {}) {
  return new Promise((resolve, reject) => {
    const { host, port, pathname, search } = new URL(url);
    const request = http.get(
      { host: "127.0.0.1", port, path: pathname + search, headers: { host, ...headers } },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text) => {
          body += text;
        });
        response.once("end", () => resolve({ status: response.statusCode, body }));
      },
    );
    request.once("error", reject);
  });
}

test("[R11] a protected preview is reached with its header and refused without; the tunnel came with the Devbox", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await served(client, "hello from inside");
  const { url, access, headers } = await box.preview(3000);
  assert.equal(access, "protected");
  assert.deepEqual(Object.keys(headers), ["X-Runloop-Tunnel-Authorization"]);
  const reached = await get(url, headers);
  assert.deepEqual(reached, { status: 200, body: "hello from inside" });
  const bare = await get(url);
  assert.notEqual(bare.status, 200);
  assert.doesNotMatch(bare.body, /hello/);
  const wrong = await get(url, { "X-Runloop-Tunnel-Authorization": "Bearer wrong" });
  assert.notEqual(wrong.status, 200);
  assert.equal(await count(service, "POST /v1/devboxes/*/enable_tunnel"), 0);
  const { body } = (await service.journal()).entries.find((each) => each.path === "/v1/devboxes");
  assert.equal(body.tunnel.auth_mode, "authenticated");
  await box.destroy();
});

test("[R11] a public preview needs no header", async (t) => {
  const { service } = await runloopClient(t);
  const client = await connect(t, service, { config: { preview: { access: "public" } } });
  const box = await served(client, "open to all");
  const { url, access, headers } = await box.preview(3000);
  assert.equal(access, "public");
  assert.deepEqual(headers, {});
  assert.deepEqual(await get(url), { status: 200, body: "open to all" });
  await box.destroy();
});

/** The text of the page as a browser shows it. Chromium resolves names below localhost itself. */
async function browsed(t, url) {
  const page = await openPage(t, url);
  await page.until("document.readyState === 'complete' && location.href !== 'about:blank'");
  return await page.evaluate("document.documentElement.outerHTML");
}

test("[R11] a browser opens a public preview by its URL, and no protected one", async (t) => {
  const { service, client: guarded } = await runloopClient(t);
  const client = await connect(t, service, { config: { preview: { access: "public" } } });
  const open = await served(client, "<h1>seen in a browser</h1>");
  assert.match(await browsed(t, (await open.preview(3000)).url), /<h1>seen in a browser<\/h1>/);
  const closed = await served(guarded, "<h1>seen in a browser</h1>");
  assert.doesNotMatch(await browsed(t, (await closed.preview(3000)).url), /seen in a browser/);
  await open.destroy();
  await closed.destroy();
});

test("[R25] after suspend and resume the preview is the same, the file is kept and the server is not", async (t) => {
  const { client } = await runloopClient(t);
  const box = await served(client, "kept");
  const before = await box.preview(3000);
  await box.suspend();
  await assert.rejects(box.exec("true"), { code: "NOT_RUNNING" });
  await box.resume();
  const after = await box.preview(3000);
  assert.equal(after.url, before.url);
  assert.notEqual((await get(after.url, after.headers)).status, 200);
  assert.equal(await box.readTextFile("/tmp/www/index.html"), "kept");
  await box.exec("busybox httpd -p 127.0.0.1:3000 -h /tmp/www", { check: true });
  assert.equal((await get(after.url, after.headers)).body, "kept");
  await box.destroy();
});

test("a port that is none rejects and nothing is sent", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  await service.clearJournal();
  for (const port of [0, -1, 65536, 1.5, "3000"]) {
    await assert.rejects(box.preview(port), { code: "INVALID_ARGUMENT" });
  }
  assert.deepEqual((await service.journal()).lines, []);
  await box.destroy();
});
