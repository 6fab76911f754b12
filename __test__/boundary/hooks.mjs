/**
 * The addon that has the test hooks, under the loader that is shipped.
 *
 * Scenarios import this in a process of their own (run.mjs), in which
 * BEACHSIDE_RUNLOOP_ADDON names the addon.
 */

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

export const { run } = require("../../loader/calls.js");
export const { bytes, json } = require("../../loader/values.js");
export const hooks = require("../../loader/native.js").native();
export const errors = require("../../client/dist/errors.js");

assert.ok(hooks.testEcho, "the addon has no test hooks");

const same = (value) => value;

/** A hook called as the loader calls a verb. */
export const sleep = (milliseconds, value, call) =>
  run(call, (cancellation) => hooks.testSleep(milliseconds, value, cancellation), same);
export const echo = (value, call) => run(call, () => hooks.testEcho(value), same);
export const fail = (call) => run(call, () => hooks.testFail(), same);
export const panic = (place) => run(undefined, () => hooks.testPanic(place), same);

export { times } from "../support/scale.mjs";

/** The error that a promise rejects with. */
export async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail("it did not reject");
}

/** Waits until a condition holds, turning the event loop meanwhile. */
export async function until(holds, milliseconds = 10_000) {
  const deadline = Date.now() + milliseconds;
  while (!holds()) {
    if (Date.now() > deadline) assert.fail(`still not so after ${milliseconds} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Collects garbage, on both runtimes. */
export async function collect() {
  for (let round = 0; round < 4; round++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (typeof Bun === "undefined") globalThis.gc();
    else Bun.gc(true);
  }
}
