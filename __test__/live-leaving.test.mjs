/**
 * Leaving a stream ends its connection within 100 ms, however it is left.
 */

import assert from "node:assert/strict";
import test from "node:test";
import { connect, sandbox, start, streams, until } from "./support/live.mjs";
import { times } from "./support/scale.mjs";

/** The bound, for the median. */
const BOUND_MS = 100;

/**
 * What a single leaving may take longer: on a machine that is busy with other
 * tests a process may wait this long for its turn, which is not ours to bound.
 */
const SCHEDULING_MS = 400;

/** Reads the first piece, and goes on waiting for the next one. */
async function waiting(stream) {
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  return { iterator, pending: iterator.next() };
}

const END = { done: true, value: undefined };

/** Each leaves a quiet stream and gives the time at which it did. */
const WAYS = {
  async break({ process }) {
    let at;
    for await (const _ of process.stdout) {
      at = Date.now();
      break;
    }
    return at;
  },
  async throw({ process }) {
    let at;
    const reading = async () => {
      for await (const _ of process.stdout) {
        at = Date.now();
        throw new Error("mine");
      }
    };
    await assert.rejects(reading(), /mine/);
    return at;
  },
  async return({ process }) {
    const { iterator, pending } = await waiting(process.output);
    const at = Date.now();
    await iterator.return();
    assert.deepEqual(await pending, END);
    return at;
  },
  async signal({ process }) {
    const stop = new AbortController();
    const reason = new Error("enough");
    const { pending } = await waiting(process.output.read({ signal: stop.signal }));
    const at = Date.now();
    stop.abort(reason);
    const error = await pending.then(assert.fail, (error) => error);
    assert.equal(error.code, "CANCELLED");
    assert.equal(error.cause, reason);
    return at;
  },
  async "a search's signal"({ process }) {
    const stop = new AbortController();
    const search = process.waitForOutput(/never/, { signal: stop.signal });
    const { iterator } = await waiting(process.stderr);
    await iterator.return();
    const at = Date.now();
    stop.abort();
    await assert.rejects(search, { code: "CANCELLED" });
    return at;
  },
  async detach({ process }) {
    const { pending } = await waiting(process.stdout);
    const at = Date.now();
    await process.detach();
    assert.deepEqual(await pending, END);
    return at;
  },
  async close({ process, box, other }) {
    const theirs = await other.sandboxes.get(box.reference);
    const reopened = await theirs.processes.get(process.reference);
    const { pending } = await waiting(reopened.stdout);
    const ended = assert.rejects(pending, { code: "CLOSED" });
    const at = Date.now();
    await other.close();
    await ended;
    return at;
  },
};

for (const [name, leave] of Object.entries(WAYS)) {
  test(`[R22] [L8] [F7] ${name} ends the connections within ${BOUND_MS} ms`, async (t) => {
    const { simulator, box } = await sandbox(t);
    const took = [];
    for (let round = 0; round < times(5); round += 1) {
      const other = await connect(t, simulator);
      await simulator.clearJournal();
      const process = await start(box, "echo ready; echo ready >&2; sleep 600");
      const at = await leave({ process, box, other });
      let closed;
      await until(`the end of the streams after ${name}`, async () => {
        closed = await streams(simulator);
        return closed.length > 0 && closed.every((each) => each.duration_ms !== null);
      });
      // The time at which the server saw it, by the same machine's clock.
      const last = Math.max(...closed.map((each) => each.time_ms + each.duration_ms));
      took.push(Math.max(0, last - at));
    }
    took.sort((one, other) => one - other);
    const report = `${took.join(", ")} ms`;
    assert.ok(took[Math.floor(took.length / 2)] <= BOUND_MS, report);
    assert.ok(took.at(-1) <= BOUND_MS + SCHEDULING_MS, report);
    t.diagnostic(report);
  });
}
