"use strict";

/**
 * Loads the native addon, once per environment, and hands it the error classes.
 *
 * Loading waits for the first call, so that an `import` cannot fail: on a
 * platform without a binary the error classes are there to catch it with.
 */

const { BeachsideError, UnsupportedFeatureError } = require("../client/dist/errors.js");

/** @typedef {import("./binary.js").Attempt} Attempt */

/** @type {typeof import("../binding.js") | undefined} */
let loaded;

/** The addon. Throws `NATIVE_BINARY_MISSING` where none could be loaded. */
function native() {
  loaded ??= load();
  return loaded;
}

function load() {
  const { version } = require("../package.json");
  const { findBinary } = require("./binary.js");
  const found = findBinary((binding) => {
    // The binary compares the version too: it cannot be fooled by an older loader.
    binding.register(BeachsideError, UnsupportedFeatureError, version);
  });
  if ("binding" in found) return found.binding;
  throw missing(found.attempts);
}

/**
 * Says what was looked for, what each attempt came to, and what to type.
 * `cause` is an AggregateError of what every attempt threw.
 *
 * @param {Attempt[]} attempts
 */
function missing(attempts) {
  const { version } = require("../package.json");
  const { platformName } = require("./platform.js");
  const platform = platformName();
  const lines = [
    `No native binary of @beachside/runloop ${version} could be loaded for ${platform} ` +
      `(${runtime()}).`,
    "",
    "Tried:",
    ...attempts.map(({ what, error }) => `- ${what}: ${firstLine(error)}`),
    "",
    ...advice(platform, version, attempts),
  ];
  return new BeachsideError(lines.join("\n"), {
    code: "NATIVE_BINARY_MISSING",
    provider: "runloop",
    cause: new AggregateError(
      attempts.map(({ error }) => error),
      "What each attempt to load the native binary threw.",
    ),
  });
}

/**
 * @param {string} platform
 * @param {string} version
 * @param {Attempt[]} attempts
 */
function advice(platform, version, attempts) {
  const { OLDEST_GLIBC, PLATFORMS } = require("./platform.js");
  if (process.env["BEACHSIDE_RUNLOOP_ADDON"]) {
    return ["BEACHSIDE_RUNLOOP_ADDON names that file. Unset it to use the installed package."];
  }
  if (!PLATFORMS.includes(platform)) {
    return [
      `There is no package for ${platform}, only for ${PLATFORMS.join(", ")}.`,
      "BEACHSIDE_RUNLOOP_ADDON may name a binary that you built yourself.",
    ];
  }
  if (attempts.some(({ error }) => /GLIBC_\d/.test(error.message))) {
    return [`This system's glibc is too old: ${OLDEST_GLIBC} or later is needed.`];
  }
  const [os, cpu, abi] = platform.split("-");
  const libc = os === "linux" ? ` --libc=${abi === "gnu" ? "glibc" : abi}` : "";
  return [
    "Possible solutions:",
    "- Install with optional dependencies:",
    `    npm install --include=optional @beachside/runloop@${version}`,
    "- Where the lock file or node_modules came from another platform, add this one:",
    `    npm install --os=${os} --cpu=${cpu}${libc} @beachside/runloop@${version}`,
    "- Install the platform's package itself:",
    `    npm install @beachside/runloop-${platform}@${version}`,
  ];
}

function runtime() {
  const { bun, node } = process.versions;
  return bun === undefined ? `Node ${node}` : `Bun ${bun}`;
}

/** @param {Error} error */
function firstLine(error) {
  return error.message.split("\n", 1)[0];
}

module.exports = { native };
