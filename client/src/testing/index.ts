/**
 * The contract suite: what every adapter must do, as cases for any test runner.
 *
 * A case chooses by `capabilities()`, never by the provider's name: where the
 * features that it needs are supported it uses them, where one is not it holds
 * the adapter to its refusal. Nothing is skipped.
 *
 * ```js
 * import test from "node:test";
 * import { contractCases } from "@beachside/runloop/testing";
 *
 * for (const { name, run } of contractCases) test(name, async () => void (await run({ connect })));
 * ```
 *
 * The sandboxes need a POSIX shell. Cases clean up what they made.
 */

import { basics } from "./basics.js";
import type { ContractCase } from "./case.js";
import { commands } from "./commands.js";
import { refusals } from "./refusals.js";
import { snapshots } from "./snapshots.js";
import { volumes } from "./volumes.js";

export type { ContractCase, ContractHarness, ContractResult } from "./case.js";

/** Every case, independent of the others and of order. */
export const contractCases: readonly ContractCase[] = Object.freeze([
  ...basics,
  ...commands,
  ...snapshots,
  ...volumes,
  ...refusals,
]);
