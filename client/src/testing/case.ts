/** What a case of the contract suite is, and how it chooses between use and refusal. */

import assert from "node:assert/strict";
import type { BeachsideClient } from "../beachside.js";
import { type Capability, capability, type Feature } from "../capabilities.js";
import { isBeachsideError, UnsupportedFeatureError } from "../errors.js";
import type { OperationReference } from "../references.js";
import type { SandboxHandle } from "../sandbox-handle.js";

/** What the author of an adapter gives. */
export interface ContractHarness {
  /**
   * A new connection to the same account each time. The suite closes it. Made
   * with `cleanup: { storage: "allow-unconfirmed" }`.
   */
  connect(): Promise<BeachsideClient>;
  /** A folder of the sandbox that its user can write and that a snapshot keeps. Default `/tmp`. */
  readonly folder?: string;
}

/** How a case ended. A case that does not hold rejects instead. */
export type ContractResult = {
  /** `refused`: a feature is not supported, and the adapter refuses it as it says. */
  readonly status: "held" | "refused";
  /** The feature that is not supported. */
  readonly feature?: Feature;
};

/** One case. */
export interface ContractCase {
  /** A sentence of behaviour. */
  readonly name: string;
  /** Rejects with an AssertionError, or with what the adapter threw, where the case does not hold. */
  run(harness: ContractHarness): Promise<ContractResult>;
}

/** What a case works with. Whatever `defer` was given runs at its end, last first. */
export interface CaseContext {
  readonly client: BeachsideClient;
  /** The harness's folder, without a slash at its end. */
  readonly folder: string;
  /** Another connection of the same account, as another process would have. */
  reconnect(): Promise<BeachsideClient>;
  /** A sandbox that is destroyed at the end. */
  sandbox(options?: Parameters<BeachsideClient["sandboxes"]["create"]>[0]): Promise<SandboxHandle>;
  defer(cleanup: () => Promise<unknown>): void;
}

interface CaseDefinition {
  readonly needs?: readonly Feature[];
  run(context: CaseContext): Promise<void>;
  /** A call that needs the missing feature; without it the refusal is not tried here. */
  refused?(context: CaseContext, feature: Feature): Promise<unknown>;
}

export function contractCase(name: string, definition: CaseDefinition): ContractCase {
  const run = async (harness: ContractHarness): Promise<ContractResult> => {
    const deferred: (() => Promise<unknown>)[] = [];
    const open = async () => {
      const client = await harness.connect();
      deferred.push(() => client.close());
      return client;
    };
    try {
      const context = await contextOf(open, deferred, harness.folder ?? "/tmp");
      const tree = await context.client.capabilities();
      const missing = definition.needs?.find(
        (feature) => capability(tree, feature).status === "unsupported",
      );
      if (missing === undefined) {
        await definition.run(context);
        return { status: "held" };
      }
      if (definition.refused !== undefined) {
        const call = definition.refused(context, missing);
        await refuses(call, missing, capability(tree, missing));
      }
      return { status: "refused", feature: missing };
    } finally {
      for (const cleanup of deferred.reverse()) await cleanup();
    }
  };
  return Object.freeze({ name, run });
}

/** Holds a call to the refusal that `capabilities()` announces. */
export async function refuses(
  call: Promise<unknown>,
  feature: Feature,
  leaf: Capability,
): Promise<void> {
  const error = await rejection(call);
  assert.ok(error instanceof UnsupportedFeatureError, `${feature}: ${String(error)}`);
  assert.equal(error.feature, feature);
  if (leaf.status !== "supported") {
    assert.equal(error.unmetRequirements[0]?.reason, leaf.reason, `the reason of ${feature}`);
  }
}

/** The error that a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail("the call should have been rejected");
}

/** Holds a call to a code. */
export async function rejectsWith(promise: Promise<unknown>, code: string): Promise<void> {
  const error = await rejection(promise);
  assert.ok(isBeachsideError(error), String(error));
  assert.equal(error.code, code, error.message);
}

/** An `onSubmit` that keeps what it was given. */
export function keeping() {
  const kept: OperationReference[] = [];
  return {
    onSubmit: (reference: OperationReference) => kept.push(reference),
    /** As it would come back from storage. */
    get reference(): OperationReference {
      const [first] = kept;
      assert.ok(first !== undefined, "onSubmit was not called");
      return JSON.parse(JSON.stringify(first)) as OperationReference;
    },
  };
}

async function contextOf(
  open: () => Promise<BeachsideClient>,
  deferred: (() => Promise<unknown>)[],
  folder: string,
): Promise<CaseContext> {
  const client = await open();
  return {
    client,
    folder,
    reconnect: open,
    defer: (cleanup) => void deferred.push(cleanup),
    async sandbox(options) {
      const sandbox = await client.sandboxes.create(options);
      deferred.push(() => sandbox.destroy());
      return sandbox;
    },
  };
}
