/**
 * The packed tarballs, installed by name into empty projects from a registry
 * on this machine, and used there against the simulator. The path of every
 * project has a space and letters beyond ASCII.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import { root } from "../../scripts/files.mjs";
import { packAll } from "../../scripts/packages/pack.mjs";
import { hostPlatform, PLATFORMS } from "../../scripts/packages/platforms.mjs";
import { emptyProject, MANAGERS, removeProjects } from "../support/project.mjs";
import { packDependencies, startRegistry } from "../support/registry.mjs";
import { startSimulator } from "../support/simulator.mjs";

const host = hostPlatform();
const runtimes = path.join(root, "__test__/runtimes/node_modules");
const bun = path.join(root, "node_modules/.bin/bun");

const output = mkdtempSync(path.join(os.tmpdir(), "beachside-packed-"));
const packed = packAll({ output });
assert.ok(packed.platforms[host], 'No release addon is packed: run "npm run build" first.');
const described = Object.keys(PLATFORMS).map((name) =>
  JSON.parse(readFileSync(path.join(root, "npm", name, "package.json"), "utf8")),
);
const registry = await startRegistry(
  [
    packed.main,
    packed.cli,
    ...Object.values(packed.platforms),
    ...packDependencies(path.join(root, "cli"), output),
  ],
  described,
);
const simulator = await startSimulator();
after(async () => {
  await registry.stop();
  await simulator.stop();
  removeProjects();
  rmSync(output, { recursive: true, force: true });
});

const env = { RUNLOOP_BASE_URL: simulator.url, RUNLOOP_API_KEY: "ak_package_test" };

const ESM = `
import { BeachsideError, runloop } from "@beachside/runloop";
import { Beachside, BeachsideError as Same } from "@beachside/runloop/client";
import * as testing from "@beachside/runloop/testing";
if (BeachsideError !== Same || Object.keys(testing).length === 0) throw new Error("not one package");
const client = await Beachside.connect(runloop({ apiKey: process.env.RUNLOOP_API_KEY }));
const { items } = await client.sandboxes.list({ limit: 1 });
await client.close();
console.log(\`works \${items.length >= 0}\`);
`;
const CJS = `
const { BeachsideError, runloop } = require("@beachside/runloop");
const { Beachside, BeachsideError: Same } = require("@beachside/runloop/client");
const testing = require("@beachside/runloop/testing");
if (BeachsideError !== Same || Object.keys(testing).length === 0) throw new Error("not one package");
Beachside.connect(runloop({ apiKey: process.env.RUNLOOP_API_KEY })).then(async (client) => {
  const { items } = await client.sandboxes.list({ limit: 1 });
  await client.close();
  console.log(\`works \${items.length >= 0}\`);
});
`;
const WORKER = `
import { Worker } from "node:worker_threads";
new Worker(new URL("./esm.mjs", import.meta.url)).once("error", (error) => { throw error; });
`;
const FAILS = `
const { BeachsideError, runloop } = require("@beachside/runloop");
const { Beachside } = require("@beachside/runloop/client");
Beachside.connect(runloop({ apiKey: "ak_x" })).catch((error) => {
  const { code, message, cause } = error;
  const ours = error instanceof BeachsideError;
  console.log(JSON.stringify({ ours, code, message, causes: cause.errors.map((each) => each.message) }));
});
`;
const TYPED = `
import { BeachsideError, runloop, type RunloopOptions } from "@beachside/runloop";
import { Beachside, type BeachsideClient, type SandboxHandle } from "@beachside/runloop/client";
import { contractCases } from "@beachside/runloop/testing";
const options: RunloopOptions = { apiKey: "ak_x", network: "blocked" };
export async function use(): Promise<string> {
  const client: BeachsideClient = await Beachside.connect(runloop(options));
  const box: SandboxHandle = await client.sandboxes.create();
  return (await box.exec(["echo", "hi"])).stdoutText();
}
export const known: unknown[] = [BeachsideError, contractCases];
// @ts-expect-error a setting that does not exist
export const wrong: RunloopOptions = { apiKey: "ak_x", netwrok: "blocked" };
`;

const npmProject = emptyProject("npm", registry.url);
await npmProject.install("npm");
npmProject.write("esm.mjs", ESM);
npmProject.write("cjs.cjs", CJS);
npmProject.write("worker.mjs", WORKER);
npmProject.write("fails.cjs", FAILS);

test("npm installs the main package and this platform's, and nothing else", () => {
  assert.deepEqual(readdirSync(npmProject.installed()).sort(), ["runloop", `runloop-${host}`]);
  const lock = JSON.parse(readFileSync(path.join(npmProject.folder, "package-lock.json"), "utf8"));
  assert.ok(Object.values(lock.packages).every((each) => each.hasInstallScript === undefined));
});

for (const [runtime, command] of [
  ["this Node", process.execPath],
  ["Node 22", path.join(runtimes, "node-22/bin/node")],
  ["Node 24", path.join(runtimes, "node-24/bin/node")],
  ["Bun", bun],
]) {
  const skip = !existsSync(command) && `${runtime} is not installed`;
  test(`an installed package works on ${runtime}: import, require and a worker`, {
    skip,
  }, async () => {
    for (const file of ["esm.mjs", "cjs.cjs", "worker.mjs"]) {
      assert.equal(await npmProject.run(command, [file], { env }), "works true\n", file);
    }
  });
}

test("TypeScript finds every type, strict, in nodenext and bundler resolution, without skipLibCheck", async () => {
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  for (const [resolution, file, module] of [
    ["nodenext", "use.mts", "nodenext"],
    ["nodenext", "use.cts", "nodenext"],
    ["bundler", "use.ts", "esnext"],
  ]) {
    npmProject.write(file, TYPED);
    await npmProject.run(process.execPath, [
      tsc,
      ...["--noEmit", "--strict", "--skipLibCheck", "false", "--target", "es2022"],
      ...["--module", module, "--moduleResolution", resolution, "--types", "node"],
      ...["--typeRoots", path.join(root, "node_modules/@types"), file],
    ]);
  }
});

test("esbuild bundles an application, with the package external and with the addon alone external", async () => {
  const esbuild = path.join(root, "node_modules/.bin/esbuild");
  for (const external of ["@beachside/runloop", "@beachside/runloop-*"]) {
    await npmProject.run(esbuild, [
      ...["cjs.cjs", "--bundle", "--platform=node", "--log-level=warning", "--log-limit=0"],
      ...[`--external:${external}`, "--outfile=bundle/app.cjs"],
    ]);
    const printed = await npmProject.run(process.execPath, ["bundle/app.cjs"], { env });
    assert.equal(printed, "works true\n", external);
  }
});

for (const manager of Object.keys(MANAGERS).filter((each) => each !== "npm")) {
  const [command, script] = MANAGERS[manager];
  const tool = command === process.execPath ? script : command;
  test(`${manager} installs it, and it works`, {
    skip: !existsSync(tool) && `no ${tool}`,
  }, async () => {
    const project = emptyProject(manager.replace(" ", "-"), registry.url);
    await project.install(manager);
    project.write("esm.mjs", ESM);
    project.write("cjs.cjs", CJS);
    // Yarn 4 installs no node_modules by itself; its own loader finds packages.
    const pnp = manager === "yarn 4";
    assert.equal(project.has(".pnp.cjs"), pnp);
    const esm = pnp ? ["--require", "./.pnp.cjs", "--loader", "./.pnp.loader.mjs"] : [];
    const cjs = pnp ? ["--require", "./.pnp.cjs"] : [];
    const run = (args) => project.run(process.execPath, args, { env });
    assert.equal(await run([...esm, "esm.mjs"]), "works true\n");
    assert.equal(await run([...cjs, "cjs.cjs"]), "works true\n");
  });
}

test("the command line works from an installed package: exit codes, snapshots, JSON, Ctrl-C", async () => {
  const project = emptyProject("command line", registry.url);
  await project.run("npm", ["install", "--no-audit", "--no-fund", "@beachside/cli"]);
  const bin = path.join(project.folder, "node_modules/.bin/beachside");
  const cliEnv = { ...process.env, ...env, BEACHSIDE_STATE: path.join(project.folder, "my state") };
  const run = (args, whenPrinted) =>
    new Promise((resolve, reject) => {
      const child = spawn(bin, args, { cwd: project.folder, env: cliEnv });
      const shown = { stdout: "", stderr: "" };
      for (const stream of ["stdout", "stderr"]) {
        child[stream].setEncoding("utf8").on("data", (text) => {
          shown[stream] += text;
        });
      }
      child.stdout.once("data", () => whenPrinted?.(child));
      child.once("error", reject);
      child.once("close", (code) => resolve({ code, ...shown }));
    });
  const ok = async (...args) => {
    const { code, stdout, stderr } = await run(args);
    assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
    return stdout.trim();
  };
  assert.equal(await ok("--version"), version);
  const id = await ok("create", "--name", "mine");
  const ended = await run(["exec", "mine", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
  assert.deepEqual(ended, { code: 7, stdout: "out\n", stderr: "err\n" });
  await ok("exec", "-s", "mine", "echo kept >/home/user/kept");
  await ok("snapshot", "create", "mine", "--name", "saved");
  const copy = JSON.parse(await ok("create", "--snapshot", "saved", "--json")).id;
  assert.equal(await ok("exec", copy, "cat", "/home/user/kept"), "kept");
  const interrupted = await run(["exec", "-f", "-s", "mine", "echo begun; sleep 600"], (child) =>
    child.kill("SIGINT"),
  );
  assert.deepEqual([interrupted.code, interrupted.stdout], [130, "begun\n"]);
  assert.match(interrupted.stderr, new RegExp(`killed[\\s\\S]*beachside destroy ${id}`));
  await ok("snapshot", "rm", "saved");
  await ok("destroy", "mine", copy);
});

async function failure(project, more = {}) {
  const { ours, code, message, causes } = JSON.parse(
    await project.run(process.execPath, ["fails.cjs"], { env: { ...env, ...more } }),
  );
  assert.deepEqual({ ours, code }, { ours: true, code: "NATIVE_BINARY_MISSING" });
  return { message, causes };
}

const version = described[0].version;
const packageName = `@beachside/runloop-${host}`;

test("installed without optional dependencies, the error names the platform, what was tried and what to type", async () => {
  const project = emptyProject("omitted", registry.url);
  await project.install("npm", "--omit=optional");
  project.write("fails.cjs", FAILS);
  const { message, causes } = await failure(project);
  assert.match(
    message,
    new RegExp(`${version} could be loaded for ${host} \\(Node ${process.versions.node}\\)`),
  );
  assert.ok(message.includes(`- ${packageName}: The package is not installed.`), message);
  assert.ok(message.includes(`npm install --include=optional @beachside/runloop@${version}`));
  assert.ok(message.includes(`npm install ${packageName}@${version}`));
  assert.deepEqual(causes, ["The package is not installed."]);
});

test("the command that the error gives mends the installation", async () => {
  const project = emptyProject("mended", registry.url);
  await project.install("npm", "--omit=optional");
  project.write("fails.cjs", FAILS);
  const { message } = await failure(project);
  const [command] = message.match(/npm install @beachside\/runloop-.*$/m);
  await project.run("npm", [...command.split(" ").slice(1), "--no-audit", "--no-fund"]);
  project.write("esm.mjs", ESM);
  assert.equal(await project.run(process.execPath, ["esm.mjs"], { env }), "works true\n");
});

test("a truncated binary is refused before it can end the process", {
  skip: process.platform !== "linux" && "other systems check by themselves",
}, async () => {
  const project = npmProject.copy("truncated");
  const file = project.installed(`runloop-${host}`, `runloop.${host}.node`);
  const whole = readFileSync(file).length;
  for (const size of [whole - 1, Math.floor(whole / 2), 4096, 10, 0]) {
    truncateSync(file, size);
    const { message, causes } = await failure(project);
    assert.match(message, new RegExp(`is not complete: it has ${size} bytes of`));
    assert.equal(causes.length, 1);
  }
});

test("a file that is no binary is named with what the system says of it", async () => {
  const project = npmProject.copy("spoiled");
  const file = project.installed(`runloop-${host}`, `runloop.${host}.node`);
  const header = readFileSync(file);
  header.fill(0, 64, 4096);
  writeFileSync(file, header);
  const { message, causes } = await failure(project);
  assert.ok(message.includes(`- ${packageName}: ${causes[0].split("\n")[0]}`), message);
});

test("the loader refuses a binary of another version", async () => {
  const project = npmProject.copy("newer-loader");
  const file = project.installed("runloop/package.json");
  writeFileSync(
    file,
    JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), version: "9.9.9" }),
  );
  const { message, causes } = await failure(project);
  assert.deepEqual(causes, [`It is version ${version}, and this package is 9.9.9.`]);
  assert.ok(message.includes(`npm install ${packageName}@9.9.9`), message);
});

test("the binary refuses a loader of another version, by itself", async () => {
  const script = `
    const binding = require("${packageName}");
    if (binding.VERSION !== "${version}") throw new Error(binding.VERSION);
    const { BeachsideError, UnsupportedFeatureError } = require("@beachside/runloop");
    binding.register(BeachsideError, UnsupportedFeatureError, "${version}");
    try { binding.register(BeachsideError, UnsupportedFeatureError, "0.0.9"); }
    catch (error) { console.log(error.message); }
  `;
  assert.equal(
    await npmProject.run(process.execPath, ["-e", script]),
    `This binary is version ${version}, and its loader is 0.0.9.\n`,
  );
});

test("BEACHSIDE_RUNLOOP_ADDON names the binary, and no other is tried", async () => {
  const file = npmProject.installed(`runloop-${host}`, `runloop.${host}.node`);
  const named = { ...env, BEACHSIDE_RUNLOOP_ADDON: file };
  assert.equal(await npmProject.run(process.execPath, ["esm.mjs"], { env: named }), "works true\n");
  const { message, causes } = await failure(npmProject, {
    BEACHSIDE_RUNLOOP_ADDON: "/nowhere.node",
  });
  assert.match(message, /- \/nowhere\.node: ENOENT/);
  assert.match(message, /BEACHSIDE_RUNLOOP_ADDON names that file/);
  assert.equal(causes.length, 1);
});

test("a platform without a package is told so", async () => {
  const script = `
    Object.defineProperty(process, "platform", { value: "freebsd" });
    ${FAILS}
  `;
  const printed = await npmProject.run(process.execPath, ["-e", script]);
  const { message } = JSON.parse(printed);
  const { arch } = process;
  assert.match(
    message,
    new RegExp(`There is no package for freebsd-${arch}, only for darwin-arm64, `),
  );
});

test("the C library is read from the executable's own header, and a static one is asked", {
  skip: process.platform !== "linux" && "only Linux has several",
}, async () => {
  const printed = (content) => {
    npmProject.write("executable", content);
    const file = path.join(npmProject.folder, "executable");
    const script = `
        process.execPath = ${JSON.stringify(file)};
        ${FAILS}
      `;
    return npmProject.run(process.execPath, ["-e", script]);
  };
  const { message } = JSON.parse(await printed("\x7fELF /lib/ld-musl-x86_64.so.1"));
  const musl = `linux-${process.arch}-musl`;
  assert.ok(message.includes(`- @beachside/runloop-${musl}: The package is not installed.`));
  assert.ok(message.includes(`--os=linux --cpu=${process.arch} --libc=musl `), message);
  // The static one is this process, so its report names this system's library.
  const { platformName } = createRequire(import.meta.url)("../../loader/platform.js");
  npmProject.write("executable", "\x7fELF without a linker");
  const before = process.execPath;
  process.execPath = path.join(npmProject.folder, "executable");
  try {
    assert.equal(platformName(), host);
  } finally {
    process.execPath = before;
  }
});

test("no package manager asked for anything but the packages, and news of itself", () => {
  const news = /^GET \/(npm|pnpm)$|\/-\/npm\/v1\/security\//;
  assert.deepEqual(
    registry.unknown.filter((asked) => !news.test(asked)),
    [],
  );
});
