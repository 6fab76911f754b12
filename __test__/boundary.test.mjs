/**
 * The boundary between JavaScript and the addon, without a network.
 *
 * Each test is a scenario of `boundary/`, in a process of its own: with the
 * addon that has the test hooks, and under the strictest eyes: anything on
 * standard error, such as a warning or a panic's message, fails it.
 */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { program } from "./support/program.mjs";

const addon = fileURLToPath(new URL("../target/test-hooks/runloop.node", import.meta.url));
const runner = fileURLToPath(new URL("boundary/run.mjs", import.meta.url));

async function scenario(file, name) {
  assert.ok(existsSync(addon), `No addon at ${addon}: run "npm run build:hooks" first.`);
  const flags = typeof Bun === "undefined" ? ["--expose-gc"] : [];
  const env = { BEACHSIDE_RUNLOOP_ADDON: addon };
  const started = Date.now();
  const ended = await program([...flags, runner, `./${file}.mjs`, name], { env, timeout: 100_000 });
  return { ...ended, milliseconds: Date.now() - started };
}

function holds(title, file, name) {
  test(title, async () => {
    const { code, signal, stderr } = await scenario(file, name);
    assert.equal(stderr, "");
    assert.deepEqual({ code, signal }, { code: 0, signal: null });
  });
}

holds(
  "10,000 concurrent calls each settle once, with their own value",
  "settling",
  "everyCallSettlesOnce",
);
holds(
  "calls settle in the order in which they complete",
  "settling",
  "callsSettleInTheOrderOfCompletion",
);
holds("a slow call does not hold quick ones back", "settling", "slowCallsDoNotHoldQuickOnesBack");
holds(
  "calls that are made while others settle are settled too",
  "settling",
  "callsMadeWhileOthersSettleAreSettledToo",
);
holds(
  "10,000 calls under one signal put one listener on it and take it off again",
  "signals",
  "manyCallsShareOneListener",
);
holds("a call after the last one left listens again", "signals", "aLaterCallListensAgain");
holds(
  "an abort ends every call with CANCELLED and the signal's very reason as cause",
  "signals",
  "anAbortEndsEveryCallWithTheReasonAsCause",
);
holds(
  "abort storms leave no listener and no task behind",
  "signals",
  "abortStormsLeaveNothingBehind",
);
holds(
  "a signal that is aborted already stops the call before it does anything",
  "signals",
  "anAbortedSignalIsSeenAtOnce",
);
holds("AbortSignal.timeout and AbortSignal.any stop a call", "signals", "derivedSignalsWork");
holds(
  "an abort after the end of a call changes nothing",
  "signals",
  "anAbortAfterTheEndChangesNothing",
);
holds("what is no AbortSignal is INVALID_ARGUMENT", "signals", "aWrongSignalIsRefused");
holds(
  "an error carries every field that is known",
  "failures",
  "anErrorCarriesEveryFieldThatIsKnown",
);
holds(
  "partial output is on the error, and hidden from inspection and JSON",
  "failures",
  "partialOutputIsThereAndHidden",
);
holds(
  "a missing feature is an UnsupportedFeatureError with its unmet requirements",
  "failures",
  "aMissingFeatureHasItsOwnClass",
);
holds(
  "instanceof holds for import and require, of the adapter and of the client",
  "failures",
  "classesAreTheSameForImportAndRequire",
);
holds("the stack of a rejected call leads to its caller", "failures", "theStackLeadsToTheCaller");
holds("a structured clone of an error is recognised", "failures", "aCloneIsStillRecognised");
holds("instanceof holds in a worker thread too", "failures", "aWorkerHasClassesOfItsOwn");
holds(
  "a panic anywhere is a rejection with INTERNAL that tells nothing of its message, and the next call works",
  "failures",
  "aPanicIsARejectionThatTellsNoSecret",
);
holds(
  "what a getter of the caller throws is the cause of the refusal",
  "failures",
  "whatTheCallersCodeThrowsIsTheCause",
);
holds("text of every kind crosses whole", "values", "textCrossesWhole");
holds(
  "[E8] NUL and half a surrogate pair are refused by the name of the argument",
  "values",
  "brokenTextIsRefusedByName",
);
holds("a value of the wrong type is refused by its name", "values", "wrongTypesAreRefusedByName");
holds("a view sends its own window of its buffer", "values", "aViewSendsItsWindow");
holds("bytes are copied when the call is made", "values", "bytesAreCopiedAtTheCall");
holds(
  "shared and resizable buffers are copied, detached and shrunk ones refused",
  "values",
  "unusualBuffersAreCopiedOrRefused",
);
holds(
  "bytes come out as plain Uint8Arrays that the caller may change",
  "values",
  "bytesComeOutAsPlainArrays",
);
holds(
  "settings that JSON cannot say are refused by path, not lost",
  "values",
  "onlyPlainDataBecomesJson",
);
holds(
  "workers that end in mid-flight leave no task behind, and the main thread goes on",
  "lifetime",
  "workersEndInMidFlight",
);
holds(
  "the addon can be loaded and left by workers only",
  "workers-only",
  "onlyWorkersLoadTheAddon",
);
holds(
  "memory stays flat over thousands of calls, failures, aborts and buffers",
  "lifetime",
  "memoryStaysFlat",
);

test("nothing keeps an idle process", async () => {
  const { code, stderr, milliseconds } = await scenario("lifetime", "anIdleProcessEndsByItself");
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  assert.ok(milliseconds < 10_000, `${milliseconds} ms`);
});

test("a pending call keeps the process until it settles", async () => {
  const { code, stdout } = await scenario("lifetime", "aPendingCallKeepsTheProcess");
  assert.deepEqual({ code, stdout }, { code: 0, stdout: "settled 42" });
});

test("process.exit does not wait for calls in flight, and does not crash", async () => {
  for (let round = 0; round < 5; round++) {
    const { code, signal, stderr, milliseconds } = await scenario(
      "lifetime",
      "exitDoesNotWaitForCalls",
    );
    assert.deepEqual({ code, signal, stderr }, { code: 7, signal: null, stderr: "" });
    assert.ok(milliseconds < 10_000, `${milliseconds} ms`);
  }
});
