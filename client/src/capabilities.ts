/**
 * What a connection can do, and the gate that holds calls to it.
 *
 * The tree is the one table of features: a feature's name is its dotted path
 * (`volumes.create`), in `capabilities()`, in `UnsupportedFeatureError.feature`
 * and in `unmetRequirements`. A call that needs a feature asks the gate before
 * anything is sent, so the two cannot drift apart.
 */

import type { OperationName } from "./calls.js";
import { type UnmetRequirement, UnsupportedFeatureError } from "./errors.js";
import type { Preserve } from "./preserve.js";

/** A feature that works. */
export interface Supported<Value = unknown> {
  readonly status: "supported";
  /** Limits and behaviour, where there is something to say. */
  readonly value?: Value;
  /** Options of the call that are accepted, where they differ by provider. */
  readonly options?: readonly string[];
}

/** A feature that does not work, or of which it is not known. */
export interface Unsupported {
  readonly status: "unsupported" | "unknown";
  /** Why, as a sentence. */
  readonly reason: string;
}

/** One leaf of {@link Capabilities}. */
export type Capability<Value = unknown> = Supported<Value> | Unsupported;

/** Limits of `exec`. */
export interface ExecLimits {
  readonly maxTimeoutSeconds: number;
  /** For each stream. */
  readonly maxOutputBytes: number;
}

/** Largest file that can be read or written in one call. */
export interface FileLimits {
  readonly maxBytes: number;
}

/** How capture behaves on this connection. */
export interface CaptureBehavior {
  readonly preserve: Preserve;
  /** The worst that a capture does to a running source. */
  readonly interruption: "none" | "pause" | "stop";
  /** How a running source is afterwards. */
  readonly sourceAfter: "running" | "stopped";
  /** Seconds until a snapshot expires; `null` where it is kept until deleted. */
  readonly retentionSeconds: number | null;
  /** Whether a snapshot can carry labels. */
  readonly labels: boolean;
}

/** How restore behaves on this connection. */
export interface RestoreBehavior {
  readonly execution: "fresh" | "resumed";
  /** Whether the new sandbox lives on when source or snapshot are deleted. */
  readonly lifecycle: "independent" | "dependent";
  /** `specs`: takes volumes at paths. Absent: takes none. */
  readonly mountInput?: "specs";
}

/** How mounted volumes behave on this connection. */
export interface MountBehavior {
  readonly subpath: boolean;
  readonly readOnly: boolean;
  /** Whether the provider can confirm that writes are durable when the sandbox is destroyed. */
  readonly durability: "confirmed" | "unconfirmed";
  /** Absolute paths at and below which nothing can be mounted. */
  readonly reservedPaths: readonly string[];
}

/** Every leaf that the client knows. An adapter may add more. */
export interface Capabilities {
  readonly sandboxes: {
    /** `options`: what `create` accepts beyond `signal` and `onSubmit`. */
    readonly create: Capability;
    readonly list: Capability;
    readonly suspend: Capability;
    readonly resume: Capability;
    readonly renew: Capability;
    readonly terminal: Capability;
    readonly labels: Capability;
    readonly regions: Capability;
    readonly fork: Capability;
  };
  readonly exec: {
    readonly run: Capability<ExecLimits>;
    /** `onStdout` and `onStderr`. */
    readonly callbacks: Capability;
  };
  readonly processes: {
    readonly stream: Capability;
    /** Output as bytes (`format: "bytes"`). */
    readonly bytes: Capability;
    /** Piped input (`stdin: "pipe"`). */
    readonly stdin: Capability;
    /** `processes.get()`. */
    readonly reopen: Capability;
    /** `process.kill()`, with SIGKILL. */
    readonly kill: Capability;
  };
  readonly files: {
    readonly read: Capability<FileLimits>;
    /** With `overwrite: true`. */
    readonly write: Capability<FileLimits>;
    /** A write that fails where the file exists. */
    readonly writeNew: Capability;
    readonly list: Capability;
    readonly mkdir: Capability;
    readonly remove: Capability;
    readonly rename: Capability;
  };
  readonly images: {
    readonly prepared: Capability;
    readonly oci: Capability;
    readonly build: Capability;
  };
  readonly network: {
    readonly blocked: Capability;
    readonly internet: Capability;
    /** An allowlist of hosts. */
    readonly allow: Capability;
  };
  readonly previews: {
    readonly open: Capability<{ readonly access: "protected" | "public" }>;
  };
  readonly snapshots: {
    readonly capture: Capability<CaptureBehavior>;
    /** `options`: what `restore` accepts beyond `signal`, `onSubmit` and `network`. */
    readonly restore: Capability<RestoreBehavior>;
    readonly list: Capability;
    readonly delete: Capability;
  };
  readonly volumes: {
    readonly create: Capability;
    readonly get: Capability;
    readonly list: Capability;
    readonly delete: Capability;
    /** `create({ mounts })`. */
    readonly mount: Capability<MountBehavior>;
  };
  readonly recovery: {
    /** Finding a create or restore by its markers. */
    readonly sandboxes: Capability;
    /** Finding a capture by its markers. */
    readonly snapshots: Capability;
  };
}

type Paths<Tree> = {
  [Area in keyof Tree & string]: `${Area}.${keyof Tree[Area] & string}`;
}[keyof Tree & string];

/** A feature's name: the dotted path of its leaf. */
export type Feature = Paths<Capabilities>;

/** The leaf of a feature; a leaf that an older adapter does not declare counts as unsupported. */
export function capability(tree: Capabilities, feature: Feature): Capability {
  const [area, leaf] = feature.split(".") as [string, string];
  const found = (tree as unknown as Record<string, Record<string, Capability> | undefined>)[area]?.[
    leaf
  ];
  return found ?? { status: "unsupported", reason: "The adapter does not declare it." };
}

/** The `value` of a supported leaf; `undefined` where it is not supported or has none. */
export function behaviorOf<Value>(leaf: Capability<Value>): Value | undefined {
  return leaf.status === "supported" ? leaf.value : undefined;
}

/** The error for a feature that is missing, with the reason that `capabilities()` gives. */
export function unsupported(
  provider: string,
  operation: OperationName,
  feature: string,
  reason: string,
): UnsupportedFeatureError {
  return new UnsupportedFeatureError(`${feature} is not supported by ${provider}: ${reason}`, {
    provider,
    operation,
    feature,
    unmetRequirements: [{ requirement: feature, reason }],
  });
}

/** One error for all requirements that cannot be met. */
export function refuseUnmet(
  provider: string,
  operation: OperationName,
  feature: string,
  unmet: readonly UnmetRequirement[],
): void {
  if (unmet.length === 0) return;
  const reasons = unmet.map((each) => each.reason).join(" ");
  throw new UnsupportedFeatureError(
    `${feature} on ${provider} cannot meet what is required: ${reasons}`,
    {
      provider,
      operation,
      feature: unmet[0]?.requirement ?? feature,
      unmetRequirements: unmet,
    },
  );
}
