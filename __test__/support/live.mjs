/**
 * Live processes on a simulator of a test's own, and streams that are spoiled.
 */

import assert from "node:assert/strict";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";
import { startSimulator } from "./simulator.mjs";

/** A sandbox on a simulator of the test's own. */
export async function sandbox(t, settings = {}) {
  const simulator = await startSimulator({ apiKey: "ak_live_processes", settings });
  t.after(() => simulator.kill());
  const client = await connect(t, simulator);
  const box = await client.sandboxes.create();
  return { simulator, client, box };
}

/** One more connection to it. */
export async function connect(t, simulator) {
  const client = await Beachside.connect(
    runloop({ apiKey: "ak_live_processes", baseUrl: simulator.url, network: "internet" }),
  );
  t.after(() => client.close());
  return client;
}

export const start = (box, command) => box.processes.start({ command, output: { mode: "stream" } });

/** Spoils the streams that are opened next, in order. */
export async function spoil(simulator, faults, output = "stream_stdout_updates") {
  for (const [after, fault] of faults.entries()) {
    await simulator.fault({
      match: { path: `/v1/devboxes/*/executions/*/${output}`, after, count: 1 },
      action: { type: "sse", ...fault },
    });
  }
}

/** Streams in the simulator's journal; one that is still open has no duration. */
export async function streams(simulator) {
  const { entries } = await simulator.journal();
  return entries.filter((each) => each.path.includes("/stream_"));
}

export async function until(what, condition) {
  for (let waited = 0; waited < 5000; waited += 10) {
    if (await condition()) return waited;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`${what} did not come about`);
}

/** As assert.equal, without a report of the length of the texts. */
export function same(actual, expected, what = "the output") {
  if (actual === expected) return;
  let at = 0;
  while (at < actual.length && actual[at] === expected[at]) at += 1;
  const lengths = `${actual.length} characters, not ${expected.length}`;
  const near = JSON.stringify(actual.slice(Math.max(0, at - 20), at + 20));
  assert.fail(`${what} has ${lengths}, and differs at ${at}, near ${near}`);
}
