/** Registers the contract suite for one provider. */

import assert from "node:assert/strict";
import test from "node:test";
import { contractCases } from "@beachside/runloop/testing";

/**
 * `start` gives `{ connect, folder?, left, stop }`; `left` counts what lives on,
 * by kind.
 */
export function contract(provider, start) {
  let started;
  const service = () => {
    started ??= start();
    return started;
  };
  for (const { name, run } of contractCases) {
    test(`${provider}: ${name}`, async () => {
      const result = await run(await service());
      assert.match(result.status, /^(held|refused)$/);
    });
  }
  test(`${provider}: the suite leaves nothing behind`, async () => {
    const { left, stop } = await service();
    assert.deepEqual(await left(), { sandboxes: 0, snapshots: 0, volumes: 0 });
    await stop();
  });
}
