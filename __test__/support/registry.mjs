/**
 * A package registry on a free port of this machine, which knows the packed
 * tarballs and nothing else, so that packages are installed by name as users
 * install them. What is asked of it that it does not have is kept in `unknown`.
 */

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";

/**
 * @param {string[]} tarballs
 * @param {object[]} described manifests of packages that were not packed; their tarballs hold nothing else
 */
export async function startRegistry(tarballs, described = []) {
  const files = new Map(tarballs.map((file) => [`/-/${path.basename(file)}`, readFileSync(file)]));
  const known = new Set([...files.values()].map((bytes) => manifestOf(bytes).name));
  for (const manifest of described.filter(({ name }) => !known.has(name))) {
    files.set(`/-/${manifest.name.replaceAll(/[@/]/g, "")}.tgz`, tarballOf(manifest));
  }
  const unknown = [];
  const server = createServer((request, response) => {
    const asked = decodeURIComponent(new URL(request.url, "http://registry").pathname);
    const file = files.get(asked);
    if (file !== undefined) return response.end(file);
    const found = documents.get(asked.slice(1));
    if (found !== undefined) {
      return response.setHeader("content-type", "application/json").end(JSON.stringify(found));
    }
    unknown.push(`${request.method} ${asked}`);
    return response.writeHead(404, { "content-type": "application/json" }).end("{}");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/`;
  const documents = new Map();
  for (const [name, bytes] of files) {
    const manifest = manifestOf(bytes);
    documents.set(manifest.name, document(manifest, `${url}${name.slice(1)}`, bytes));
  }
  const stop = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url, unknown, stop };
}

function document(manifest, tarball, bytes) {
  const dist = {
    tarball,
    shasum: createHash("sha1").update(bytes).digest("hex"),
    integrity: `sha512-${createHash("sha512").update(bytes).digest("base64")}`,
  };
  return {
    name: manifest.name,
    "dist-tags": { latest: manifest.version },
    versions: { [manifest.version]: { ...manifest, dist } },
    time: { [manifest.version]: "2026-01-01T00:00:00.000Z" },
  };
}

/**
 * Packs what is installed here of a manifest's dependencies, and of theirs, so
 * that they can be served too.
 *
 * @param {string} folder of the manifest
 * @param {string} output where the tarballs go
 */
export function packDependencies(folder, output) {
  const folders = new Set();
  const walk = (from) => {
    const { dependencies = {} } = JSON.parse(readFileSync(path.join(from, "package.json"), "utf8"));
    for (const name of Object.keys(dependencies)) {
      const found = installedFrom(from, name);
      if (name.startsWith("@beachside/") || folders.has(found)) continue;
      folders.add(found);
      walk(found);
    }
  };
  walk(folder);
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", output];
  const { status, stdout, stderr } = spawnSync("npm", [...args, ...folders], { encoding: "utf8" });
  if (status !== 0) throw new Error(`npm pack of dependencies failed:\n${stderr}`);
  return JSON.parse(stdout).map(({ filename }) => path.join(output, filename));
}

/** Where Node finds a package, as seen from a folder. */
function installedFrom(from, name) {
  for (let folder = from; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const candidate = path.join(folder, "node_modules", name);
    if (existsSync(path.join(candidate, "package.json"))) return candidate;
  }
  throw new Error(`${name} is not installed; run npm install.`);
}

/** A package that holds its manifest alone. */
function tarballOf(manifest) {
  const content = Buffer.from(JSON.stringify(manifest));
  const tar = Buffer.alloc(512 + Math.ceil(content.length / 512) * 512 + 1024);
  const octal = (value, digits) => value.toString(8).padStart(digits, "0");
  tar.write("package/package.json", 0);
  tar.write(`${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100);
  tar.write(`${octal(content.length, 11)}\0${octal(0, 11)}\0        0`, 124);
  tar.write("ustar\u000000", 257);
  const sum = tar.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  tar.write(`${octal(sum, 6)}\0 `, 148);
  content.copy(tar, 512);
  return gzipSync(tar);
}

/** The entries of a packed tarball, by their path below `package/`. */
export function entriesOf(tarball) {
  const tar = gunzipSync(tarball);
  const entries = new Map();
  for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
    const text = (from, length) => tar.toString("utf8", at + from, at + from + length);
    const name = text(0, 100).split("\0", 1)[0];
    const prefix = text(345, 155).split("\0", 1)[0];
    const size = Number.parseInt(text(124, 12), 8);
    const full = prefix === "" ? name : `${prefix}/${name}`;
    entries.set(full.replace(/^package\//, ""), tar.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return entries;
}

export function manifestOf(tarball) {
  return JSON.parse(entriesOf(tarball).get("package.json"));
}
