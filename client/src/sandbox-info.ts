/** A sandbox as `inspect()` and lists show it: the adapter's record in the caller's terms. */

import type { Difference, SandboxRecord, SandboxState } from "./adapter.js";
import type { Connection } from "./connection.js";
import { mountRecords } from "./mounts.js";
import {
  claimOf,
  type MountRecord,
  type OperationReference,
  type Ownership,
  type SandboxReference,
} from "./references.js";

/** What lists say of each sandbox. */
export interface SandboxSummary {
  /** For `client.sandboxes.get()`. */
  readonly reference: SandboxReference;
  /** As the provider reports it; `unknown` is a state that this version does not know. */
  readonly state: SandboxState;
  /** The provider's own word for the state. */
  readonly providerState: string;
  /** ISO 8601; `null` where the provider does not say. */
  readonly createdAt: string | null;
  /** Whether this application is proven to have made it. */
  readonly ownership: Ownership;
  /** `null` where the provider keeps none. */
  readonly labels: Readonly<Record<string, string>> | null;
}

/** What `inspect()` says of one sandbox. */
export interface SandboxInfo extends SandboxSummary {
  /** The provider's reason, for a failed or ended sandbox. */
  readonly reason: string | null;
  /** The image's name or id; `null` for the provider's default. */
  readonly image: string | null;
  /** When it ends or sleeps, as reported. */
  readonly lifecycle: {
    /** Seconds from its creation to its end; `null` where there is no such limit. */
    readonly lifetimeSeconds: number | null;
    /** Seconds without activity until it sleeps; `null` where it never does. */
    readonly idleSeconds: number | null;
  };
  /** What it may reach, as reported. */
  readonly network: {
    /** `unknown` where the reported policy is none of ours. */
    readonly policy: "blocked" | "internet" | "unknown";
    /** The provider's id of the policy; `null` without one. */
    readonly policyId: string | null;
  };
  /**
   * Settings that the provider reports otherwise than they were asked for.
   * What was asked for is known to the connection that made the sandbox, and
   * nowhere kept: of a reopened or listed sandbox this is empty and says nothing.
   */
  readonly differences: readonly Difference[];
  /** Id of the snapshot it was restored from. */
  readonly snapshot: string | null;
  /** Mounted volumes; `unknown` where neither the provider nor the reference says. */
  readonly mounts: readonly MountRecord[] | "unknown";
}

export function sandboxSummary(record: SandboxRecord, reference: SandboxReference): SandboxSummary {
  return {
    reference,
    state: record.state,
    providerState: record.providerState,
    createdAt: isoTime(record.createdAtMs),
    ownership: reference.ownership,
    labels: record.labels ?? null,
  };
}

export function sandboxInfo(record: SandboxRecord, reference: SandboxReference): SandboxInfo {
  return {
    ...sandboxSummary(record, reference),
    reason: record.reason,
    image: record.image,
    lifecycle: record.lifecycle,
    network: record.network,
    differences: record.differences,
    snapshot: record.snapshotId,
    mounts: reference.mounts,
  };
}

/** ISO 8601, or `null` for an unknown or impossible time. */
export function isoTime(ms: number | null): string | null {
  if (ms === null) return null;
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/**
 * The reference of a sandbox that the provider reports. What a saved reference
 * claims counts as far as the provider's own data agree with it.
 */
export function foundSandbox(
  connection: Connection,
  record: SandboxRecord,
  saved?: SandboxReference,
): SandboxReference {
  const { id, markers } = record;
  const ownership = connection.ownership("sandbox", id, markers, saved?.ownership);
  const claimed = ownership.state === "created" ? saved?.mounts : undefined;
  const mounts = record.mounts === undefined ? claimed : mountRecords(record.mounts);
  return connection.sandboxReference(id, ownership, mounts ?? "unknown");
}

/** The reference of a sandbox whose markers were found to be those of a saved operation. */
export function madeSandbox(
  connection: Connection,
  record: SandboxRecord,
  operation: OperationReference,
): SandboxReference {
  const claimed = connection.sandboxReference(record.id, claimOf(operation), "unknown");
  return foundSandbox(connection, record, claimed);
}
