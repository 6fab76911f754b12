/** Scripts that are killed, and what the service has afterwards. */

import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { KEY } from "./runloop.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** A folder that ends with the test. */
export function folder(t) {
  const made = mkdtempSync(path.join(tmpdir(), "beachside-killed-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Starts a script of this repository with the file of its saved references; `onLine` sees what it prints. */
export function start(service, script, file, onLine = () => {}) {
  appendFileSync(file, "");
  const child = spawn(process.execPath, [script, file], {
    cwd: root,
    env: { ...process.env, RUNLOOP_BASE_URL: service.url, RUNLOOP_API_KEY: KEY },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const lines = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    onLine(line);
  });
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, stderr, lines }));
  });
  return { kill: () => child.kill("SIGKILL"), ended };
}

/** Runs a script and kills it so long after it printed `step`. */
export async function killedAt(service, script, file, step, milliseconds) {
  const { kill, ended } = start(service, script, file, (line) => {
    if (line === step) setTimeout(kill, milliseconds);
  });
  return ended;
}

/** What the second script reports; it has the saved references alone. */
export async function recovered(service, file) {
  const { code, stderr, lines } = await start(service, "examples/recover.mjs", file).ended;
  if (code !== 0) throw new Error(`the second script ended with ${code}: ${stderr}`);
  return JSON.parse(lines.at(-1));
}

/** The references that a script saved. */
export function savedIn(file) {
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}

/** Every Devbox and snapshot of the service, as its API shows them. */
export async function state(service) {
  return {
    devboxes: await all(service, "/v1/devboxes", "devboxes"),
    snapshots: await all(service, "/v1/devboxes/disk_snapshots", "snapshots"),
    policies: await all(service, "/v1/network-policies", "network_policies"),
  };
}

async function all(service, route, field) {
  const items = [];
  for (;;) {
    const query = new URLSearchParams({ limit: "1000" });
    if (items.length > 0) query.set("starting_after", items.at(-1).id);
    const response = await fetch(`${service.url}${route}?${query}`, {
      headers: { authorization: `Bearer ${KEY}` },
    });
    const page = await response.json();
    items.push(...page[field]);
    if (!page.has_more) return items;
  }
}
