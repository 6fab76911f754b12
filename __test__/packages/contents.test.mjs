/** What the packed tarballs hold, and what the binary in them needs. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import { root } from "../../scripts/files.mjs";
import { packAll } from "../../scripts/packages/pack.mjs";
import { hostPlatform, OLDEST_GLIBC, PLATFORMS } from "../../scripts/packages/platforms.mjs";
import { entriesOf } from "../support/registry.mjs";

const output = mkdtempSync(path.join(os.tmpdir(), "beachside-packed-"));
after(() => rmSync(output, { recursive: true, force: true }));

const host = hostPlatform();
const packed = packAll({ output });
const main = entriesOf(readFileSync(packed.main));
assert.ok(packed.platforms[host], 'No release addon is packed: run "npm run build" first.');
const platform = entriesOf(readFileSync(packed.platforms[host]));
const binary = platform.get(`runloop.${host}.node`);

const json = (file) => JSON.parse(readFileSync(path.join(root, file), "utf8"));
const { version } = json("package.json");

test("the main package holds JavaScript, types and documents, and nothing that is built or run at install time", () => {
  const kinds = /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|.*\.(js|mjs|d\.ts|d\.mts))$/;
  assert.deepEqual(
    [...main.keys()].filter((file) => !kinds.test(file)),
    [],
  );
  const manifest = JSON.parse(main.get("package.json"));
  for (const absent of ["scripts", "dependencies", "devDependencies", "private", "workspaces"]) {
    assert.equal(manifest[absent], undefined, absent);
  }
  for (const entry of entryFiles(manifest.exports)) assert.ok(main.has(entry), entry);
});

test("the main package asks for every platform package, in exactly its own version", () => {
  const { optionalDependencies } = JSON.parse(main.get("package.json"));
  assert.deepEqual(
    optionalDependencies,
    Object.fromEntries(
      Object.keys(PLATFORMS).map((name) => [`@beachside/runloop-${name}`, version]),
    ),
  );
});

test("the command line's package needs the main package in its own version, and holds its program", () => {
  const cli = entriesOf(readFileSync(packed.cli));
  const manifest = JSON.parse(cli.get("package.json"));
  assert.equal(manifest.dependencies["@beachside/runloop"], version);
  assert.equal(manifest.private, undefined);
  for (const program of Object.values(manifest.bin)) assert.ok(cli.has(program), program);
});

test("a platform package holds one binary, its README and the licences", () => {
  assert.deepEqual([...platform.keys()].sort(), [
    "LICENSE",
    "README.md",
    "THIRD-PARTY.md",
    "package.json",
    `runloop.${host}.node`,
  ]);
});

test("a platform without a binary is named, and no release leaves one out", (t) => {
  assert.deepEqual(
    [...Object.keys(packed.platforms), ...packed.missing].sort(),
    Object.keys(PLATFORMS),
  );
  if (packed.missing.length === 0) return t.skip("every platform has its binary here");
  const script = path.join(root, "scripts/packages/pack.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "--all"], {
    encoding: "utf8",
  });
  assert.deepEqual([status, stdout], [1, ""]);
  for (const name of packed.missing) {
    assert.match(stderr, new RegExp(`^  ${name}: npm run build -- --target `, "m"));
  }
});

test("the loader, the build and the platform packages name the same platforms", () => {
  const { PLATFORMS: loaded } = requireLoader();
  assert.deepEqual([...loaded], Object.keys(PLATFORMS));
  const folders = readdirSync(path.join(root, "npm")).filter((name) => name !== "beachside");
  assert.deepEqual(folders.sort(), Object.keys(PLATFORMS).sort());
  const source = readFileSync(path.join(root, "loader/binary.js"), "utf8");
  for (const [name, { os: system, cpu, libc }] of Object.entries(PLATFORMS)) {
    const manifest = json(`npm/${name}/package.json`);
    assert.equal(manifest.name, `@beachside/runloop-${name}`);
    assert.deepEqual(
      [manifest.os, manifest.cpu, manifest.libc],
      [[system], [cpu], libc === undefined ? undefined : [libc]],
    );
    assert.equal(manifest.main, `runloop.${name}.node`);
    assert.ok(source.includes(`require("@beachside/runloop-${name}")`), name);
  }
});

test("every manifest carries one version", () => {
  const cargo = readFileSync(path.join(root, "Cargo.toml"), "utf8");
  assert.equal(/\[workspace\.package\]\nversion = "([^"]+)"/.exec(cargo)[1], version);
  const folders = readdirSync(path.join(root, "npm")).map((name) => path.join("npm", name));
  for (const folder of [...folders, "cli"]) {
    assert.equal(json(`${folder}/package.json`).version, version, folder);
  }
});

test("publint and Are the types wrong find nothing in the main package", () => {
  for (const [tool, ...args] of [
    ["publint", "run", "--strict"],
    ["attw", "--profile", "node16", "--format", "ascii", "--no-color"],
  ]) {
    const command = path.join(root, "node_modules/.bin", tool);
    const { status, stdout, stderr } = spawnSync(command, [...args, packed.main], {
      encoding: "utf8",
    });
    assert.equal(status, 0, `${tool}:\n${stdout}${stderr}`);
  }
});

test("THIRD-PARTY.md names what is linked in now", () => {
  execFileSync(process.execPath, [path.join(root, "scripts/third-party.mjs"), "--check"]);
});

test("the binary needs no glibc beyond the promised one", {
  skip: host !== "linux-x64-gnu" && `this is ${host}`,
}, () => {
  const text = binary.toString("latin1");
  const needed = [...text.matchAll(/\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)/g)];
  assert.ok(needed.length > 3);
  const [major, minor] = OLDEST_GLIBC.split(".").map(Number);
  const newer = needed.filter(([, a, b]) => Number(a) > major || Number(b) > minor);
  assert.deepEqual(
    newer.map(([symbol]) => symbol.slice(1)),
    [],
  );
  // Nor a library that some systems lack.
  assert.doesNotMatch(text, /\0lib(gcc_s|ssl|crypto|stdc\+\+|c\+\+)\.so/);
});

test("the binary says nothing about the machine that built it", () => {
  const text = binary.toString("latin1");
  const cargo = process.env.CARGO_HOME ?? path.join(os.homedir(), ".cargo");
  for (const builder of [root, cargo, `${os.homedir()}${path.sep}`, "registry/src"]) {
    assert.ok(!text.includes(builder), builder);
  }
  assert.ok(text.includes("crates/"), "paths of libraries are shortened, not absent");
});

test("the binary has less than 6 MiB and no debug information", () => {
  assert.ok(binary.length < 6 * 1024 * 1024, `${binary.length} bytes`);
  assert.ok(!binary.includes("\0.debug_info\0"));
  assert.ok(!binary.includes("\0.symtab\0"));
});

function entryFiles(tree) {
  if (typeof tree === "string") return [tree.replace(/^\.\//, "")];
  return Object.values(tree).flatMap(entryFiles);
}

function requireLoader() {
  return process.getBuiltinModule("module").createRequire(import.meta.url)(
    "../../loader/platform.js",
  );
}
