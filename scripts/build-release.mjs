/**
 * Builds the addon as it is shipped, into this folder and into npm/PLATFORM/.
 *
 *   node scripts/build-release.mjs [--target TRIPLE]
 *
 * On Linux zig links it against glibc 2.17, so that it runs on systems older
 * than this one (scripts/zig.sh installs zig). Paths of the machine that
 * builds are cut from the binary: it says what the source says, and nothing
 * about who built it.
 */

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { root } from "./files.mjs";
import { hostPlatform, PLATFORMS } from "./packages/platforms.mjs";

const { values } = parseArgs({ options: { target: { type: "string" } } });
const name = values.target === undefined ? hostPlatform() : platformOf(values.target);
const platform = PLATFORMS[name];
if (platform === undefined) throw new Error(`There is no package for ${name}.`);

const zig = process.platform === "linux";
if (zig) run(path.join(root, "scripts/zig.sh"), []);

const napi = path.join(root, "node_modules/@napi-rs/cli/dist/cli.js");
const options = ["--platform", "--release", "--no-js", "--dts", "binding.d.ts", "--no-const-enum"];
run(process.execPath, [
  napi,
  "build",
  ...options,
  ...(zig ? ["--cross-compile", "--target", platform.linked] : ["--target", platform.triple]),
  "--",
  "--locked",
]);
const file = `runloop.${name}.node`;
copyFileSync(path.join(root, file), path.join(root, "npm", name, file));

function run(command, args) {
  const { status, signal, error } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...environment() },
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${path.basename(command)} ended with ${signal ?? status}`);
}

function platformOf(triple) {
  return Object.keys(PLATFORMS).find((each) => PLATFORMS[each].triple === triple) ?? triple;
}

function environment() {
  const { PATH, RUSTFLAGS = "" } = process.env;
  const flags = [
    ...RUSTFLAGS.split(" ").filter((flag) => flag !== ""),
    ...remaps().map(([from, to]) => `--remap-path-prefix=${from}=${to}`),
    // An addon is a library that musl's linker loads.
    ...(platform.libc === "musl" ? ["-Ctarget-feature=-crt-static"] : []),
  ];
  return {
    PATH: `${path.join(root, ".cache/zig/bin")}${path.delimiter}${PATH}`,
    // Unlike RUSTFLAGS, it holds paths with spaces.
    CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f"),
  };
}

/** What stands for each folder whose path the compiler would write into the binary. */
function remaps() {
  const cargo = process.env.CARGO_HOME ?? path.join(os.homedir(), ".cargo");
  const sources = path.join(cargo, "registry", "src");
  const registries = existsSync(sources) ? readdirSync(sources) : [];
  // The compiler takes the last one that fits.
  return [
    [cargo, "cargo"],
    [root.replace(/[\\/]$/, ""), "."],
    ...registries.map((each) => [path.join(sources, each), "crates"]),
  ];
}
