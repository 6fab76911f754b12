import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { inspect } from "node:util";
import { Worker } from "node:worker_threads";
import { BeachsideError, isBeachsideError, UnsupportedFeatureError } from "../../index.mjs";
import { echo, errors, fail, hooks, panic, rejection, run } from "./hooks.mjs";

const require = createRequire(import.meta.url);

export async function anErrorCarriesEveryFieldThatIsKnown() {
  const error = await rejection(fail());
  const { name, message, stack, cause, ...fields } = {
    name: error.name,
    message: error.message,
    stack: error.stack,
    cause: error.cause,
    ...error,
  };
  assert.equal(name, "BeachsideError");
  assert.equal(message, "lost");
  assert.equal(cause, undefined);
  assert.equal(typeof stack, "string");
  assert.deepEqual(fields, {
    code: "OUTCOME_UNKNOWN",
    provider: "runloop",
    operation: "exec",
    resource: { kind: "sandbox", id: "dbx_1" },
    reason: "reply_lost",
    status: 502,
    requestId: "req_1",
    retryAfterSeconds: 1.5,
    attempts: 2,
    outcome: {
      submitted: true,
      sandboxId: "dbx_1",
      snapshotId: "snp_1",
      processId: "exe_1",
      killed: "unknown",
      leftovers: ["/tmp/left"],
      exitCode: 0,
      outputUnavailable: true,
    },
  });
}

export async function partialOutputIsThereAndHidden() {
  const error = await rejection(fail());
  assert.ok(error.stdout instanceof Uint8Array);
  assert.equal(Buffer.from(error.stdout).toString(), "out");
  assert.equal(Buffer.from(error.stderr).toString(), "err");
  for (const shown of [inspect(error), JSON.stringify(error), Object.keys(error).join()]) {
    assert.doesNotMatch(shown, /stdout|stderr/);
  }
}

export async function aMissingFeatureHasItsOwnClass() {
  const call = run(
    undefined,
    () => hooks.testUnsupported(),
    (value) => value,
  );
  const error = await rejection(call);
  assert.ok(error instanceof UnsupportedFeatureError);
  assert.ok(error instanceof BeachsideError);
  assert.equal(error.code, "UNSUPPORTED");
  assert.equal(error.feature, "volumes");
  assert.deepEqual(error.unmetRequirements, [
    { requirement: "volumes", reason: "Runloop has none" },
  ]);
}

export async function classesAreTheSameForImportAndRequire() {
  const error = await rejection(fail());
  assert.ok(error instanceof require("../../index.js").BeachsideError);
  assert.ok(error instanceof require("../../client/dist/index.js").BeachsideError);
  assert.ok(error instanceof (await import("../../client/index.mjs")).BeachsideError);
  assert.ok(error instanceof errors.BeachsideError);
  assert.ok(error instanceof Error);
}

export async function theStackLeadsToTheCaller() {
  async function theCaller() {
    return await fail();
  }
  const error = await rejection(theCaller());
  assert.match(error.stack, /^BeachsideError \[OUTCOME_UNKNOWN\]: lost\n/);
  assert.match(error.stack, /theCaller/);
  assert.doesNotMatch(error.stack, /loader/);
}

export async function aCloneIsStillRecognised() {
  const clone = structuredClone(await rejection(fail()));
  assert.ok(!(clone instanceof BeachsideError));
  assert.ok(isBeachsideError(clone));
  assert.equal(clone.code, "OUTCOME_UNKNOWN");
}

export async function aWorkerHasClassesOfItsOwn() {
  const worker = new Worker(new URL("failing-worker.mjs", import.meta.url));
  const answer = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  assert.deepEqual(answer, { ours: true, code: "OUTCOME_UNKNOWN", caller: true });
  await worker.terminate();
  assert.ok((await rejection(fail())) instanceof BeachsideError);
}

export async function aPanicIsARejectionThatTellsNoSecret() {
  for (const place of ["entry", "begin", "poll", "later", "drop", "view"]) {
    const error = await rejection(panic(place));
    assert.ok(error instanceof BeachsideError, place);
    assert.equal(error.code, "INTERNAL", place);
    assert.doesNotMatch(inspect(error), /secret/, place);
    assert.equal(await echo(7), 7, `the call after a panic in ${place}`);
  }
}

export async function whatTheCallersCodeThrowsIsTheCause() {
  const thrown = new Error("from the getter");
  const options = {
    get cwd() {
      throw thrown;
    },
  };
  const error = await rejection(
    run(
      undefined,
      () => hooks.testArguments("x", options),
      (value) => value,
    ),
  );
  assert.equal(error.code, "INVALID_ARGUMENT");
  assert.equal(error.cause, thrown);
}
