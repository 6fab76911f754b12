/**
 * The simulator as a child process on a free port, and its journal.
 *
 * A test that leaves a request on an unknown route behind fails when the
 * simulator is stopped. `npm run build:simulator` makes the binary;
 * RUNLOOP_SIMULATOR names another one.
 */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { keep } from "./suite-log.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

export function simulatorBinary() {
  const target = process.env.CARGO_TARGET_DIR ?? path.join(root, "target");
  const binary =
    process.env.RUNLOOP_SIMULATOR ?? path.resolve(root, target, "debug", "runloop-simulator");
  if (!existsSync(binary)) {
    throw new Error(`No simulator at ${binary}: run "npm run build:simulator" first.`);
  }
  return binary;
}

/**
 * Starts a simulator; `settings` are its switches, `more` further arguments.
 * With `tls` its `url` is https (HTTP/2 and HTTP/1.1) and `ca` the path of the
 * certificate to trust, for NODE_EXTRA_CA_CERTS or a client's own option.
 */
export async function startSimulator({ apiKey, settings = {}, tls = false, more = [] } = {}) {
  const args = ["--port", "0", ...(tls ? ["--tls"] : []), ...more];
  if (apiKey !== undefined) args.push("--api-key", apiKey);
  for (const [name, value] of Object.entries(settings)) args.push("--set", `${name}=${value}`);
  // A pipe as stdin: the simulator ends when this process does, however it ends.
  const child = spawn(simulatorBinary(), args, { stdio: ["pipe", "pipe", "pipe"] });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    log = (log + text).slice(-65536);
  });
  const exited = new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  const line = await Promise.race([
    new Promise((resolve) => createInterface({ input: child.stdout }).once("line", resolve)),
    exited.then(() => {
      throw new Error(`The simulator ended at its start:\n${log}`);
    }),
  ]);
  return new RunningSimulator(child, exited, JSON.parse(line), () => log);
}

class RunningSimulator {
  #child;
  #exited;
  #log;

  constructor(child, exited, { url, plain_url = url, ca, isolation }, log) {
    this.#child = child;
    this.#exited = exited;
    this.#log = log;
    this.url = url;
    /** The same without TLS. */
    this.plainUrl = plain_url;
    /** The path of the authority's certificate, with TLS. */
    this.ca = ca;
    this.pid = child.pid;
    /** Whether the guests have their own namespaces on this machine. */
    this.isolation = isolation;
  }

  /** What it logged, for a failing test's message. */
  get log() {
    return this.#log();
  }

  /**
   * The requests so far, as `METHOD /path` lines are easiest to compare.
   * `query` narrows them: `since` a sequence number, `method`, `path` its start.
   */
  async journal(query = {}) {
    const journal = await this.control("GET", `/journal?${new URLSearchParams(query)}`);
    return { ...journal, lines: journal.entries.map((each) => `${each.method} ${each.path}`) };
  }

  /** Forgets the requests so far. */
  async clearJournal() {
    await this.control("DELETE", "/journal");
  }

  /** A rule that makes matching requests fail; see simulator/src/faults. */
  async fault(rule) {
    return this.control("POST", "/faults", rule);
  }

  async set(settings) {
    return this.control("POST", "/settings", settings);
  }

  async control(method, route, body) {
    const response = await fetch(`${this.plainUrl}/_simulator${route}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`simulator ${method} ${route}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  /** Moves its virtual clock forward. */
  async advance(seconds) {
    return this.control("POST", "/clock", { advance_seconds: seconds });
  }

  /**
   * Ends it and gives its `{ code, signal }`. Fails where a request came on a
   * route that the API does not have.
   */
  async stop() {
    const { unexpected } = await this.journal();
    this.#child.kill("SIGTERM");
    const ended = await this.#exited;
    keep(this.log);
    if (unexpected.length > 0) {
      throw new Error(`Requests on unknown routes: ${unexpected.join(", ")}`);
    }
    return ended;
  }

  /** Ends it without any chance to clean up. */
  async kill() {
    this.#child.kill("SIGKILL");
    await this.#exited;
    keep(this.log);
  }
}
