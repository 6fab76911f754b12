"use strict";

/**
 * Finds the addon's binary and proves that it belongs to this loader.
 *
 * Looks at the file that `BEACHSIDE_RUNLOOP_ADDON` names, and nowhere else
 * when it is set; else at a build in this folder's parent (a checkout; a
 * published package has none), else at the platform's package. What was tried
 * and why it failed is kept, for the error that `native.js` makes of it.
 */

const fs = require("node:fs");
const path = require("node:path");
const { version } = require("../package.json");
const { assertWhole, platformName } = require("./platform.js");

/** @typedef {typeof import("../binding.js")} Binding */
/** @typedef {{ what: string, error: Error }} Attempt */

/**
 * The first binary that loads and that `accept` does not throw for, or every
 * attempt.
 *
 * @param {(binding: Binding) => void} accept
 * @returns {{ binding: Binding } | { attempts: Attempt[] }}
 */
function findBinary(accept) {
  /** @type {Attempt[]} */
  const attempts = [];
  for (const [what, load] of places()) {
    try {
      const binding = load();
      assertVersion(binding.VERSION);
      accept(binding);
      return { binding };
    } catch (error) {
      attempts.push({ what, error: error instanceof Error ? error : new Error(String(error)) });
    }
  }
  return { attempts };
}

/** @returns {[what: string, load: () => Binding][]} */
function places() {
  const named = process.env["BEACHSIDE_RUNLOOP_ADDON"];
  if (named) return [[named, () => loadFile(path.resolve(named))]];
  const platform = platformName();
  const local = path.join(__dirname, "..", `runloop.${platform}.node`);
  const packaged = `@beachside/runloop-${platform}`;
  /** @type {[string, () => Binding][]} */
  const found = [[packaged, () => loadPackage(packaged)]];
  if (fs.existsSync(local)) found.unshift([local, () => loadFile(local)]);
  return found;
}

/** @param {string} file */
function loadFile(file) {
  assertWhole(file);
  return require(file);
}

/**
 * Each name in full and inside `try`: bundlers and tracers of files find only
 * such calls, and may not fail over the packages that are not installed.
 *
 * @param {string} name
 * @returns {Binding}
 */
function loadPackage(name) {
  try {
    assertWhole(require.resolve(name));
    switch (name) {
      case "@beachside/runloop-darwin-arm64":
        return require("@beachside/runloop-darwin-arm64");
      case "@beachside/runloop-darwin-x64":
        return require("@beachside/runloop-darwin-x64");
      case "@beachside/runloop-linux-arm64-gnu":
        return require("@beachside/runloop-linux-arm64-gnu");
      case "@beachside/runloop-linux-arm64-musl":
        return require("@beachside/runloop-linux-arm64-musl");
      case "@beachside/runloop-linux-x64-gnu":
        return require("@beachside/runloop-linux-x64-gnu");
      case "@beachside/runloop-linux-x64-musl":
        return require("@beachside/runloop-linux-x64-musl");
      case "@beachside/runloop-win32-x64-msvc":
        return require("@beachside/runloop-win32-x64-msvc");
      default:
        return require(name);
    }
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND";
    throw missing ? new Error("The package is not installed.", { cause: error }) : error;
  }
}

/** @param {unknown} found */
function assertVersion(found) {
  if (found === version) return;
  throw new Error(`It is version ${found ?? "unknown"}, and this package is ${version}.`);
}

module.exports = { findBinary };
