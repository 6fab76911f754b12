/** The simulator's page for people, in a real browser. */

import assert from "node:assert/strict";
import test from "node:test";
import { openPage } from "./support/browser.mjs";
import { startSimulator } from "./support/simulator.mjs";

const KEY = "ak_a_key_that_no_page_shows";

/** Would run in a page that takes text for markup. */
const EVIL = `<script>window.ran = 1</script><img src="x" onerror="window.ran = 1">`;

function client(simulator) {
  return async (path, body) => {
    const response = await fetch(`${simulator.url}${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    });
    return { status: response.status, ...(await response.json()) };
  };
}

const holds = (id, text) =>
  `document.getElementById("${id}")?.innerText.includes(${JSON.stringify(text)})`;

test("the page shows boxes, live output, requests and faults, as text", async (t) => {
  const simulator = await startSimulator();
  t.after(() => simulator.stop());
  const post = client(simulator);
  const page = await openPage(t, `${simulator.url}/_simulator`);
  await page.until(holds("devboxes", "None yet."));

  const { id } = await post("/v1/devboxes", { name: EVIL, tunnel: { auth_mode: "authenticated" } });
  const { tunnel } = await post(`/v1/devboxes/${id}/wait_for_status`, { statuses: ["running"] });
  const command = `echo begun; until [ -e go ]; do sleep 0.02; done; echo '${EVIL}' ; echo oops >&2`;
  await post(`/v1/devboxes/${id}/execute_async`, { command });
  await page.until(holds("devboxes", EVIL));
  await page.until(holds("devboxes", id));
  await page.until(holds("devboxes", command));

  // The output is followed while the command runs.
  await page.evaluate(`document.querySelector("button.execution").click()`);
  await page.until(holds("output", "begun"));
  assert.ok(await page.evaluate(holds("output-of", command)));
  assert.ok(await page.evaluate(holds("devboxes", "running")));
  assert.ok(!(await page.evaluate(holds("output", EVIL))));
  await post(`/v1/devboxes/${id}/write_file_contents`, { file_path: "go", contents: "" });
  await page.until(holds("output", EVIL));
  await page.until(holds("devboxes", "exit 0"));
  const spans = `[...document.querySelectorAll("#output span")].map((each) => each.className).join()`;
  await page.until(`${spans}.includes("stderr")`);

  // A rule that acts, and the request that it acted on.
  const match = { path: "/v1/devboxes/*/keep_alive", body_contains: EVIL };
  await simulator.fault({ id: EVIL, match, action: { type: "refuse", status: 503, text: EVIL } });
  await page.until(holds("faults", "acted on 0 of 0"));
  await fetch(`${simulator.url}/v1/devboxes/${id}/keep_alive`, {
    method: "POST",
    body: JSON.stringify({ a: "b" }),
    headers: { authorization: `Bearer ${KEY}` },
  });
  await simulator.fault({ id: "plain", match: {}, action: { type: "latency", milliseconds: 1 } });
  await post("/v1/devboxes", { name: "second" });
  await page.until(holds("faults", "acted on 1 of 1"));
  assert.ok(await page.evaluate(holds("faults", EVIL)));
  await page.until(holds("requests", "POST /v1/devboxes\t200"));
  await page.until(holds("requests", "plain"));
  await page.until(holds("requests", `POST /v1/devboxes/${id}/keep_alive`));

  // Nothing of it became markup, ran or was even refused by the page's policy.
  const names = `[...document.querySelectorAll("*")].map((each) => each.localName)`;
  assert.equal(await page.evaluate(`${names}.includes("img")`), false);
  assert.equal(await page.evaluate(`${names}.filter((name) => name === "script").length`), 1);
  assert.equal(await page.evaluate("window.ran === undefined"), true);
  assert.deepEqual(page.events("Log.entryAdded", "Runtime.exceptionThrown"), []);

  // Every byte came from here, and no key or token is among them.
  const urls = page.events("Network.requestWillBeSent").map(({ params }) => params.request.url);
  assert.ok(urls.length > 3);
  for (const url of urls.filter((each) => each !== "data:,")) {
    assert.ok(url.startsWith(`${simulator.url}/_simulator`), url);
  }
  assert.ok(tunnel.auth_token.length > 20);
  const overview = await (await fetch(`${simulator.url}/_simulator/overview`)).text();
  const shown = await page.evaluate("document.documentElement.outerHTML");
  for (const secret of [KEY, tunnel.auth_token]) {
    assert.ok(!overview.includes(secret));
    assert.ok(!shown.includes(secret));
  }
});

test("the page forbids what is not its own, and says when the simulator is gone", async (t) => {
  const simulator = await startSimulator();
  const response = await fetch(`${simulator.url}/_simulator/`);
  assert.equal(response.url, `${simulator.url}/_simulator`);
  const policy = response.headers.get("content-security-policy");
  for (const part of [
    "default-src 'none'",
    "script-src 'self'",
    "require-trusted-types-for 'script'",
  ]) {
    assert.ok(policy.includes(part), policy);
  }
  const page = await openPage(t, `${simulator.url}/_simulator`);
  await page.until(holds("health", simulator.isolation));
  const inline = `new Promise((resolve) => {
    document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
    document.body.append(Object.assign(document.createElement("img"), { src: "https://127.0.0.1:9/x" }));
  })`;
  assert.equal(await page.evaluate(inline), "img-src");
  await assert.rejects(page.evaluate("document.body.innerHTML = '<p>'"), /TrustedHTML/);
  await simulator.stop();
  await page.until(holds("health", "does not answer"));
});
