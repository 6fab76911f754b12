import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import util from "node:util";
import vm from "node:vm";
import { Worker } from "node:worker_threads";
import {
  BeachsideError,
  isBeachsideError,
  UnsupportedFeatureError,
} from "@beachside/runloop/client";

const require = createRequire(import.meta.url);
const CLIENT = require.resolve("@beachside/runloop/client");

// Node's structured clone keeps an error's cause, Bun's does not.
const CLONE_KEEPS_CAUSE = structuredClone(new Error("", { cause: 1 })).cause === 1;

const lost = () =>
  new BeachsideError("The answer was lost.", {
    code: "OUTCOME_UNKNOWN",
    provider: "memory",
    operation: "exec",
    status: 502,
    requestId: "req_1",
    retryAfterSeconds: 2,
    outcome: { kind: "exec", submitted: true },
    stdout: new TextEncoder().encode("printed-secret"),
    cause: new Error("reset"),
  });

test("ESM and CommonJS export the same names, and one instance of every class", async () => {
  const commonjs = require("@beachside/runloop/client");
  const esm = await import("@beachside/runloop/client");
  assert.deepEqual(Object.keys(esm).sort(), Object.keys(commonjs).sort());
  for (const name of Object.keys(esm)) assert.equal(esm[name], commonjs[name], name);
  const alias = await import("beachside");
  assert.equal(alias.BeachsideError, commonjs.BeachsideError);
  assert.equal(require("beachside").BeachsideError, commonjs.BeachsideError);
});

test("an error has its name, code, fields, cause and the stack of where it was made", () => {
  const error = lost();
  assert.equal(error.name, "BeachsideError");
  assert.ok(error instanceof Error);
  assert.match(error.stack, /^BeachsideError \[OUTCOME_UNKNOWN\]: The answer was lost\.\n/);
  assert.match(error.stack, /lost.*errors\.test\.mjs/);
  assert.equal(error.cause.message, "reset");
  assert.equal(String(error), "BeachsideError: The answer was lost.");
  assert.deepEqual(Object.keys(error), [
    "code",
    "provider",
    "operation",
    "outcome",
    "status",
    "requestId",
    "retryAfterSeconds",
  ]);
});

test("[V17] what a failed command printed is on the error, and in no inspection or JSON", () => {
  const error = lost();
  assert.equal(new TextDecoder().decode(error.stdout), "printed-secret");
  const shown = util.inspect(error, { depth: 10 }) + JSON.stringify(error);
  const bytes = [...error.stdout].join();
  assert.doesNotMatch(shown, /printed-secret/);
  assert.equal(shown.replaceAll(/\s/g, "").includes(bytes), false);
});

test("an unsupported feature says which, and why", () => {
  const error = new UnsupportedFeatureError("No volumes.", {
    feature: "volumes.create",
    unmetRequirements: [{ requirement: "volumes.create", reason: "There are none." }],
  });
  assert.ok(error instanceof BeachsideError);
  assert.equal(error.name, "UnsupportedFeatureError");
  assert.equal(error.code, "UNSUPPORTED");
  assert.deepEqual(JSON.parse(JSON.stringify(error)), {
    name: "UnsupportedFeatureError",
    message: "No volumes.",
    code: "UNSUPPORTED",
    feature: "volumes.create",
    unmetRequirements: [{ requirement: "volumes.create", reason: "There are none." }],
  });
});

test("[K7] an error is recognised as JSON, as a structured clone and from another copy of the package", () => {
  assert.ok(isBeachsideError(lost()));
  assert.ok(isBeachsideError(JSON.parse(JSON.stringify(lost()))));

  const clone = structuredClone(lost());
  assert.ok(isBeachsideError(clone));
  assert.equal(clone.code, "OUTCOME_UNKNOWN");
  assert.equal(clone.name, "BeachsideError");
  if (CLONE_KEEPS_CAUSE) assert.equal(clone.cause.message, "reset");
  assert.ok(clone instanceof Error);

  const module = new URL("./errors.js", `file://${CLIENT}`).pathname;
  const cached = require.cache[module];
  delete require.cache[module];
  const copy = require(module);
  require.cache[module] = cached;
  const foreign = new copy.BeachsideError("x", { code: "INTERNAL" });
  assert.equal(foreign instanceof BeachsideError, false);
  assert.ok(isBeachsideError(foreign));
});

test("[K7] an error that a worker posts is recognised, with name, code, cause and stack", async () => {
  const source = `
    const { parentPort } = require("node:worker_threads");
    const { BeachsideError } = require(${JSON.stringify(CLIENT)});
    parentPort.postMessage(new BeachsideError("gone", { code: "NOT_FOUND", cause: new Error("why") }));
  `;
  const worker = new Worker(source, { eval: true });
  const error = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  await worker.terminate();
  assert.ok(error instanceof Error);
  assert.ok(isBeachsideError(error));
  assert.equal(error.code, "NOT_FOUND");
  assert.equal(error.message, "gone");
  if (CLONE_KEEPS_CAUSE) assert.equal(error.cause.message, "why");
  assert.match(error.stack, /NOT_FOUND/);
});

test("nothing else is taken for one of our errors", () => {
  const others = [
    undefined,
    null,
    "BeachsideError",
    {},
    { name: "BeachsideError", message: "x", code: "ENOENT" },
    { name: "BeachsideError", code: "INTERNAL" },
    new Error("BeachsideError [NOT_FOUND]: x"),
    Object.assign(new Error("x"), { code: "NOT_FOUND" }),
    vm.runInNewContext("new Error('x')"),
  ];
  for (const other of others) assert.equal(isBeachsideError(other), false, util.inspect(other));
});
