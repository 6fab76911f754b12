// Who the key belongs to, and what the SDK makes of refusals.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuthenticationError, NotFoundError } from "@runloop/api-client";
import { suite } from "./support/suite.mjs";

suite("accounts and errors", (c) => {
  test("the account of the key is there and enabled", async () => {
    const account = await c.api.accounts.me();
    assert.equal(account.account_status, "ACCOUNT_STATUS_ENABLED");
    assert.ok(account.id);
    assert.equal((await c.api.accounts.me()).id, account.id);
  });

  test("a wrong key is the SDK's AuthenticationError", async () => {
    const { api } = c.client({ bearerToken: "wrong" });
    await assert.rejects(api.accounts.me(), AuthenticationError);
  });

  test("a missing Devbox is the SDK's NotFoundError, with a message", async () => {
    await assert.rejects(c.api.devboxes.retrieve("dbx_doesnotexist"), (error) => {
      assert.ok(error instanceof NotFoundError);
      assert.match(error.message, /^404 .+/);
      return true;
    });
  });

  test("a busy service is tried again with the same request id until it answers", async () => {
    await c.simulator.fault({
      match: { method: "POST", path: "/v1/network-policies", count: 2 },
      action: { type: "rate_limit", retry_after: "0.01" },
    });
    await c.api.networkPolicies.create({ name: "tried again" });
    const tries = await c.sent("/v1/network-policies", "POST");
    assert.deepEqual(
      tries.map((entry) => [entry.status, entry.headers["x-stainless-retry-count"]]),
      [
        [429, "0"],
        [429, "1"],
        [200, "2"],
      ],
    );
    assert.equal(new Set(tries.map((entry) => entry.headers["x-request-id"])).size, 1);
  });
});
