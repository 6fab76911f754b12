"use strict";

/**
 * Loads the native addon, once per environment, and hands it the error classes.
 *
 * Loading waits for the first call, so that an `import` cannot fail: on a
 * platform without a binary the error classes are there to catch it with.
 */

const { BeachsideError, UnsupportedFeatureError } = require("../client/dist/errors.js");

/** @type {typeof import("../binding.js") | undefined} */
let loaded;

/** The addon. Throws `NATIVE_BINARY_MISSING` where there is none for this platform. */
function native() {
  loaded ??= load();
  return loaded;
}

function load() {
  /** @type {typeof import("../binding.js")} */
  let binding;
  try {
    binding = require("../binding.js");
  } catch (cause) {
    throw new BeachsideError(
      `No native binary of @beachside/runloop could be loaded for ${process.platform}-${process.arch}. ` +
        "Install the package again on this machine, with its optional dependencies; " +
        "error.cause says what was tried.",
      { code: "NATIVE_BINARY_MISSING", cause },
    );
  }
  binding.register(BeachsideError, UnsupportedFeatureError);
  return binding;
}

module.exports = { native };
