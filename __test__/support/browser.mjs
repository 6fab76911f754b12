/**
 * A page in headless Chromium, driven over its own pipe.
 *
 * Owns the browser's process and the protocol's framing; knows nothing of the
 * pages. Start reading at `openPage`.
 */

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { keep } from "./suite-log.mjs";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-sync",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--remote-debugging-pipe",
];

/** Opens `url`; the browser ends with the test `t`. */
export async function openPage(t, url) {
  const profile = await mkdtemp(path.join(os.tmpdir(), "beachside-browser-"));
  const child = spawn("chromium", [...FLAGS, `--user-data-dir=${profile}`], {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
  });
  const exited = new Promise((resolve, reject) => {
    child.once("exit", resolve);
    child.once("error", reject);
  });
  const browser = new Connection(child.stdio[3], child.stdio[4], exited);
  t.after(async () => {
    keep(await page.evaluate("document.documentElement.outerHTML").catch(() => ""));
    await browser.send("Browser.close").catch(() => child.kill("SIGKILL"));
    await exited;
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });
  const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
  const page = new Page(browser, sessionId);
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
  await page.send("Page.navigate", { url });
  return page;
}

/** Messages are JSON with a NUL behind each. */
class Connection {
  #input;
  #pending = new Map();
  #id = 0;
  #rest = "";
  #ended;
  events = [];

  constructor(input, output, exited) {
    this.#input = input;
    input.on("error", () => {});
    output.setEncoding("utf8").on("data", (text) => this.#take(text));
    exited.then(
      () => this.#end(new Error("the browser has ended")),
      (error) => this.#end(error),
    );
  }

  send(method, params = {}, sessionId = undefined) {
    if (this.#ended) return Promise.reject(this.#ended);
    this.#id += 1;
    const message = { id: this.#id, method, params, sessionId };
    return new Promise((resolve, reject) => {
      this.#pending.set(message.id, { method, resolve, reject });
      this.#input.write(`${JSON.stringify(message)}\0`);
    });
  }

  #take(text) {
    const messages = (this.#rest + text).split("\0");
    this.#rest = messages.pop();
    for (const message of messages.map((each) => JSON.parse(each))) {
      const waiting = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (waiting === undefined) this.events.push(message);
      else if (message.error)
        waiting.reject(new Error(`${waiting.method}: ${message.error.message}`));
      else waiting.resolve(message.result);
    }
  }

  #end(error) {
    this.#ended = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

class Page {
  #browser;
  #session;

  constructor(browser, session) {
    this.#browser = browser;
    this.#session = session;
  }

  send(method, params) {
    return this.#browser.send(method, params, this.#session);
  }

  /** What happened so far of these kinds, such as `Log.entryAdded`. */
  events(...methods) {
    return this.#browser.events.filter(({ method }) => methods.includes(method));
  }

  /** The value of an expression in the page. */
  async evaluate(expression) {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", options);
    if (exceptionDetails)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Looks until an expression is true; fails with what the page shows instead. */
  async until(expression, seconds = 20) {
    const deadline = Date.now() + seconds * 1000;
    while (!(await this.evaluate(expression))) {
      if (Date.now() > deadline) {
        const text = await this.evaluate("document.body.innerText");
        throw new Error(`not true within ${seconds} s: ${expression}\n${text}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
