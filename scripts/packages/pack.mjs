/**
 * Packs what is published, into target/packages/: the main package, the
 * command line, and one package for each platform whose binary is in
 * npm/PLATFORM/.
 *
 *   node scripts/packages/pack.mjs [--all] [--repository URL]
 *
 * A platform without a binary is named on standard error and left out; with
 * `--all`, which a release uses, it is a failure, and so is no binary at all.
 * The package.json of a
 * checkout has no optionalDependencies (packages that are not published yet
 * cannot be installed) and is private, so that it is not published by
 * mistake; here both are put right. Prints the tarballs, one a line, in the
 * order in which they must be published.
 */

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { root } from "../files.mjs";
import { PLATFORMS } from "./platforms.mjs";

const PUBLISHING = { access: "public", provenance: true };
const OUTPUT = path.join(root, "target/packages");

/**
 * @param {{ all?: boolean, repository?: string, output?: string }} [options]
 * @returns {{ platforms: Record<string, string>, missing: string[], main: string, cli: string }}
 *   paths of the tarballs, and the platforms that have no binary
 */
export function packAll({ all = false, repository, output = OUTPUT } = {}) {
  const missing = Object.keys(PLATFORMS).filter((name) => !existsSync(binaryOf(name)));
  if (all && missing.length > 0) throw new Error(withoutBinary(missing));
  if (missing.length === Object.keys(PLATFORMS).length)
    throw new Error("No platform has a binary.");
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  const stamp = repository === undefined ? {} : { repository: { type: "git", url: repository } };
  const platforms = {};
  for (const name of Object.keys(PLATFORMS).filter((each) => !missing.includes(each))) {
    const folder = path.join("npm", name);
    const description = manifest(folder);
    const extra = [[folder, "README.md"], "LICENSE", "THIRD-PARTY.md"];
    platforms[name] = pack(output, name, folder, { ...description, ...stamp }, extra);
  }
  const main = pack(output, "main", ".", { ...published(), ...stamp }, ["README.md", "LICENSE"]);
  const cli = pack(output, "cli", "cli", { ...commandLine(), ...stamp }, [
    ["cli", "README.md"],
    "LICENSE",
  ]);
  return { platforms, missing, main, cli };
}

function binaryOf(name) {
  return path.join(root, "npm", name, manifest(path.join("npm", name)).main);
}

function withoutBinary(names) {
  const triples = names.map(
    (name) => `  ${name}: npm run build -- --target ${PLATFORMS[name].triple}`,
  );
  return `These platforms have no binary, and no package:\n${triples.join("\n")}`;
}

/** The main package's manifest: without what only a checkout needs. */
function published() {
  const { private: _, devDependencies, napi, scripts, workspaces, ...kept } = manifest(".");
  const names = Object.keys(PLATFORMS).map((name) => manifest(path.join("npm", name)).name);
  return {
    ...kept,
    optionalDependencies: Object.fromEntries(names.map((name) => [name, kept.version])),
    publishConfig: PUBLISHING,
  };
}

/** The command line's manifest: with the published main package instead of this folder. */
function commandLine() {
  const { private: _, devDependencies, dependencies, ...kept } = manifest("cli");
  return {
    ...kept,
    dependencies: { ...dependencies, [manifest(".").name]: kept.version },
    publishConfig: PUBLISHING,
  };
}

function pack(output, name, from, description, extra) {
  const stage = path.join(output, "stage", name);
  mkdirSync(stage, { recursive: true });
  writeFileSync(path.join(stage, "package.json"), `${JSON.stringify(description, undefined, 2)}\n`);
  const carried = new Set(extra.flat());
  for (const file of description.files) {
    if (!carried.has(file)) copy(path.join(root, from), stage, file);
  }
  for (const each of extra) {
    const [folder, file] = typeof each === "string" ? [".", each] : each;
    copy(path.join(root, folder), stage, file);
  }
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const { status, stdout, stderr } = spawnSync(
    npm,
    ["pack", "--json", "--ignore-scripts", "--pack-destination", output],
    { cwd: stage, encoding: "utf8", shell: process.platform === "win32" },
  );
  if (status !== 0) throw new Error(`npm pack of ${name} failed:\n${stderr}`);
  return path.join(output, JSON.parse(stdout)[0].filename);
}

/** A file, a folder, or the files of a folder with one ending (`loader/*.js`). */
function copy(from, to, file) {
  const [folder, ending] = file.split("/*");
  cpSync(path.join(from, folder), path.join(to, folder), {
    recursive: true,
    filter: (each) => ending === undefined || each.endsWith(ending) || !path.extname(each),
  });
}

function manifest(folder) {
  return JSON.parse(readFileSync(path.join(root, folder, "package.json"), "utf8"));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({
    options: { all: { type: "boolean" }, repository: { type: "string" } },
  });
  try {
    const { platforms, missing, main, cli } = packAll(values);
    if (missing.length > 0) console.error(withoutBinary(missing));
    console.log([...Object.values(platforms), main, cli].join("\n"));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
