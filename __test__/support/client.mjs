/** A client on a fresh in-memory provider, closed when the test ends. */

import { Beachside } from "beachside";
import { assertKept } from "./leaks.mjs";
import { memoryAdapter } from "./memory-adapter.mjs";

export async function memoryClient(t, options = {}) {
  const { cleanup, ...rest } = options;
  const memory = memoryAdapter(rest);
  const client = await Beachside.connect({ adapter: memory.adapter, cleanup });
  t.after(() => client.close());
  memory.world.calls.length = 0;
  return { client, ...memory };
}

/** The error that a promise rejects with, which shows no secret; `what` names it where it does not. */
export async function rejection(promise, what = "the call") {
  try {
    await promise;
  } catch (error) {
    assertKept(error, what);
    return error;
  }
  throw new Error(`${what} should have been rejected`);
}
