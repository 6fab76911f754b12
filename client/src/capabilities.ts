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
  /** It works. */
  readonly status: "supported";
  /** Limits and behaviour, where there is something to say. */
  readonly value?: Value;
  /** Options of the call that are accepted, where they differ by provider. */
  readonly options?: readonly string[];
}

/** A feature that does not work, or of which it is not known. */
export interface Unsupported {
  /** `unknown`: the call is tried, and the provider decides. */
  readonly status: "unsupported" | "unknown";
  /** Why, as a sentence. */
  readonly reason: string;
}

/** One leaf of {@link Capabilities}. */
export type Capability<Value = unknown> = Supported<Value> | Unsupported;

/** Limits of `exec`. */
export interface ExecLimits {
  /** The longest deadline of a command. */
  readonly maxTimeoutSeconds: number;
  /** For each stream. */
  readonly maxOutputBytes: number;
}

/** Largest file that can be read or written in one call. */
export interface FileLimits {
  /** Bytes of the content. */
  readonly maxBytes: number;
}

/** How capture behaves on this connection. */
export interface CaptureBehavior {
  /** What a snapshot keeps. */
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
  /** `fresh`: the new sandbox boots. `resumed`: it goes on where the source was. */
  readonly execution: "fresh" | "resumed";
  /** Whether the new sandbox lives on when source or snapshot are deleted. */
  readonly lifecycle: "independent" | "dependent";
  /** `specs`: takes volumes at paths. Absent: takes none. */
  readonly mountInput?: "specs";
}

/** How mounted volumes behave on this connection. */
export interface MountBehavior {
  /** Whether a folder of a volume can be mounted. */
  readonly subpath: boolean;
  /** Whether a volume can be mounted without the right to write. */
  readonly readOnly: boolean;
  /** Whether the provider can confirm that writes are durable when the sandbox is destroyed. */
  readonly durability: "confirmed" | "unconfirmed";
  /** Absolute paths at and below which nothing can be mounted. */
  readonly reservedPaths: readonly string[];
}

/** Every leaf that the client knows. An adapter may add more. */
export interface Capabilities {
  /** Making sandboxes and what becomes of them. */
  readonly sandboxes: {
    /** `options`: what `create` accepts beyond `signal` and `onSubmit`. */
    readonly create: Capability;
    /** `sandboxes.list()`. */
    readonly list: Capability;
    /** `box.suspend()`. */
    readonly suspend: Capability;
    /** `box.resume()`. */
    readonly resume: Capability;
    /** `box.renew()`. */
    readonly renew: Capability;
    /** `box.terminal()`. */
    readonly terminal: Capability;
    /** `create({ labels })`. */
    readonly labels: Capability;
    /** `create({ region })`. */
    readonly regions: Capability;
    /** `box.fork()`. */
    readonly fork: Capability;
  };
  /** Commands that run to their end. */
  readonly exec: {
    /** `box.exec()`. */
    readonly run: Capability<ExecLimits>;
    /** `onStdout` and `onStderr`. */
    readonly callbacks: Capability;
  };
  /** Live processes. */
  readonly processes: {
    /** `processes.start()`, with output as text. */
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
  /** Files. */
  readonly files: {
    /** `box.readFile()`. */
    readonly read: Capability<FileLimits>;
    /** With `overwrite: true`. */
    readonly write: Capability<FileLimits>;
    /** A write that fails where the file exists. */
    readonly writeNew: Capability;
    /** `box.files.list()`. */
    readonly list: Capability;
    /** `box.files.mkdir()`. */
    readonly mkdir: Capability;
    /** `box.files.remove()`. */
    readonly remove: Capability;
    /** `box.files.rename()`. */
    readonly rename: Capability;
  };
  /** What a connection can start sandboxes from. */
  readonly images: {
    /** `Image.prepared()`. */
    readonly prepared: Capability;
    /** `Image.oci()`. */
    readonly oci: Capability;
    /** `Image.build()`. */
    readonly build: Capability;
  };
  /** What sandboxes can be allowed to reach. */
  readonly network: {
    /** Nothing. */
    readonly blocked: Capability;
    /** Everything. */
    readonly internet: Capability;
    /** An allowlist of hosts. */
    readonly allow: Capability;
  };
  /** Ports that can be reached from outside. */
  readonly previews: {
    /** `box.preview()`. */
    readonly open: Capability<{
      /** Who may open the previews of this connection. */
      readonly access: "protected" | "public";
    }>;
  };
  /** Saving a sandbox and making new ones of it. */
  readonly snapshots: {
    /** `box.snapshot()`. */
    readonly capture: Capability<CaptureBehavior>;
    /** `options`: what `restore` accepts beyond `signal`, `onSubmit` and `network`. */
    readonly restore: Capability<RestoreBehavior>;
    /** `snapshots.list()`. */
    readonly list: Capability;
    /** `snapshot.delete()`. */
    readonly delete: Capability;
  };
  /** Storage that outlives sandboxes. */
  readonly volumes: {
    /** `volumes.create()`. */
    readonly create: Capability;
    /** `volumes.get()`. */
    readonly get: Capability;
    /** `volumes.list()`. */
    readonly list: Capability;
    /** `volume.delete()`. */
    readonly delete: Capability;
    /** `create({ mounts })`. */
    readonly mount: Capability<MountBehavior>;
  };
  /** What `client.recover()` can find. */
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
