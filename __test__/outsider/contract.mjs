/** Runs the contract suite on the toy adapter and prints how each case ended, one JSON line a case. */

import { Beachside } from "@beachside/runloop/client";
import { contractCases } from "@beachside/runloop/testing";
import { sandboxes, toyAdapter } from "./adapter.mjs";

const cleanup = { storage: "allow-unconfirmed" };
const connect = () => Beachside.connect({ adapter: toyAdapter, cleanup });

for (const { name, run } of contractCases) {
  const result = await run({ connect }).catch((error) => ({ status: "failed", error: `${error}` }));
  console.log(JSON.stringify({ name, ...result }));
}
const left = [...sandboxes.values()].filter(({ state }) => state !== "destroyed");
console.log(
  JSON.stringify({ name: "nothing is left", status: left.length === 0 ? "held" : "failed" }),
);
