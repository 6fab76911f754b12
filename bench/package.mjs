/** What having the package costs: loading it, and its size once installed. */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { median } from "./measures.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));

/** Milliseconds of an import, and the memory of the process over a bare one. */
export async function imports(rounds) {
  const what = { bare: "node:path", ours: "@beachside/runloop", sdk: "@runloop/api-client" };
  const measured = { bare: [], ours: [], sdk: [] };
  for (let round = 0; round < Math.max(5, rounds); round += 1) {
    for (const [name, module] of Object.entries(what)) {
      const script = `const start = performance.now(); const cpu = process.cpuUsage();
        await import("${module}");
        const ms = performance.now() - start; const { user, system } = process.cpuUsage(cpu);
        console.log(JSON.stringify({ ms, cpuMs: (user + system) / 1000, rss: process.memoryUsage.rss() }));`;
      const args = ["--input-type=module", "--eval", script];
      measured[name].push(JSON.parse(execFileSync(process.execPath, args, { cwd: root })));
    }
  }
  const of = (name, field) => median(measured[name].map((figures) => figures[field]));
  return Object.fromEntries(
    ["ours", "sdk"].map((name) => [
      name,
      {
        ms: of(name, "ms") - of("bare", "ms"),
        cpuMs: of(name, "cpuMs") - of("bare", "cpuMs"),
        megabytes: (of(name, "rss") - of("bare", "rss")) / 1e6,
      },
    ]),
  );
}

/** Packages and bytes once installed, without what a package's author alone needs. */
export function installed() {
  const packed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [{ unpackedSize, files }] = JSON.parse(packed);
  const addons = readdirSync(root).filter((name) => name.endsWith(".node"));
  const addonBytes = addons.reduce((sum, name) => sum + statSync(path.join(root, name)).size, 0);
  // The addon travels in the platform's package, whether or not the main one lists it.
  const inMain = files.filter((file) => file.path.endsWith(".node"));
  const mainBytes = unpackedSize - inMain.reduce((sum, file) => sum + file.size, 0);
  const sdk = new Set();
  follow(path.join(root, "node_modules/@runloop/api-client"), sdk);
  const sdkBytes = [...sdk].reduce((sum, folder) => sum + bytesIn(folder), 0);
  return {
    ours: { packages: 2, bytes: mainBytes + addonBytes, addonBytes },
    sdk: { packages: sdk.size, bytes: sdkBytes },
  };
}

/** A package and all that it depends on. */
function follow(folder, seen) {
  if (seen.has(folder)) return;
  seen.add(folder);
  const { dependencies = {} } = JSON.parse(readFileSync(path.join(folder, "package.json")));
  for (const name of Object.keys(dependencies)) {
    let from = folder;
    for (;;) {
      const candidate = path.join(from, "node_modules", name);
      if (statSync(candidate, { throwIfNoEntry: false }) !== undefined) {
        follow(candidate, seen);
        break;
      }
      if (from === path.dirname(from)) throw new Error(`${name} is not installed`);
      from = path.dirname(from);
    }
  }
}

function bytesIn(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const below = path.join(folder, entry.name);
    if (entry.isDirectory()) bytes += entry.name === "node_modules" ? 0 : bytesIn(below);
    else if (entry.isFile()) bytes += statSync(below).size;
  }
  return bytes;
}
