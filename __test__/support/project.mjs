/** Empty projects in folders of their own, into which the packed tarballs are installed. */

import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { root } from "../../scripts/files.mjs";

const tools = path.join(root, "__test__/runtimes/node_modules");

/** How each package manager installs `@beachside/runloop` into an empty project. */
export const MANAGERS = {
  npm: ["npm", "install", "--no-audit", "--no-fund", "@beachside/runloop"],
  pnpm: [path.join(tools, ".bin/pnpm"), "add", "@beachside/runloop"],
  "yarn 1": [process.execPath, path.join(tools, "yarn/bin/yarn.js"), "add", "@beachside/runloop"],
  "yarn 4": [
    process.execPath,
    path.join(tools, "@yarnpkg/cli-dist/bin/yarn.js"),
    "add",
    "@beachside/runloop",
  ],
  bun: [path.join(root, "node_modules/.bin/bun"), "add", "@beachside/runloop"],
};

/** Parents of all projects; the name has a space and letters beyond ASCII. */
const parent = mkdtempSync(path.join(os.tmpdir(), "beachside prøjekt 项目-"));

export function removeProjects() {
  rmSync(parent, { recursive: true, force: true });
}

/** @param {string} registry its address */
export function emptyProject(name, registry) {
  const folder = path.join(parent, name);
  mkdirSync(folder);
  const write = (file, text) => writeFileSync(path.join(folder, file), text);
  write("package.json", JSON.stringify({ name: "project", private: true, version: "1.0.0" }));
  write(".npmrc", `registry=${registry}\n`);
  write(".yarnrc", `registry "${registry}"\n`);
  write(
    ".yarnrc.yml",
    [
      `npmRegistryServer: "${registry}"`,
      'unsafeHttpWhitelist: ["127.0.0.1"]',
      "enableTelemetry: false",
      "enableGlobalCache: false",
      "npmMinimalAgeGate: 0",
      "pnpEnableEsmLoader: true",
    ].join("\n"),
  );
  // Yarn takes a folder for a project of its own only with a lock file of its own.
  write("yarn.lock", "");
  return project(folder);
}

function project(folder) {
  const run = (command, args, options) => runIn(folder, command, args, options);
  return {
    folder,
    run,
    write: (file, text) => writeFileSync(path.join(folder, file), text),
    has: (file) => existsSync(path.join(folder, file)),
    installed: (...rest) => path.join(folder, "node_modules/@beachside", ...rest),
    install: (manager, ...more) => {
      const [command, ...args] = MANAGERS[manager];
      return run(command, [...args, ...more]);
    },
    /** The same project again, to be spoiled. */
    copy(name) {
      const to = path.join(parent, name);
      cpSync(folder, to, { recursive: true, verbatimSymlinks: true });
      return project(to);
    },
  };
}

/** What a program printed. Rejects with all that it printed unless it ends with 0. */
async function runIn(folder, command, args, { env = {}, timeout = 100_000 } = {}) {
  const home = path.join(parent, "home");
  mkdirSync(home, { recursive: true });
  const kept = Object.entries(process.env).filter(([name]) => !/^npm_|^node_|_proxy$/i.test(name));
  const child = spawn(command, args, {
    cwd: folder,
    env: {
      ...Object.fromEntries(kept),
      HOME: home,
      XDG_CACHE_HOME: path.join(home, "cache"),
      XDG_DATA_HOME: path.join(home, "data"),
      BUN_INSTALL_CACHE_DIR: path.join(home, "bun"),
      npm_config_cache: path.join(home, "npm"),
      npm_config_update_notifier: "false",
      CI: "",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (...ended) => resolve(ended));
  });
  if (code === 0) return stdout;
  throw new Error(
    `${command} ${args.join(" ")} ended with ${signal ?? code}\n${stdout}\n${stderr}`,
  );
}
