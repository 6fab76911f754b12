/**
 * The interface between the Beachside client and an adapter.
 *
 * The client holds what is the same for every provider: argument checks,
 * references, scope checks, capability gating, operations, recovery and
 * clean-up. An adapter holds what is its provider's. Each rule lives on one
 * side only.
 *
 * Every method rejects with a `BeachsideError`, whose `outcome` is an
 * `AdapterOutcome` (outcome.ts): what the adapter knows, by the provider's ids.
 * The client turns the ids into references and adds the operation's kind.
 * Durations are seconds, sizes bytes, times milliseconds since the epoch.
 */

import type { AdapterVolumes } from "./adapter-volumes.js";
import type { Capabilities } from "./capabilities.js";
import type { Progress } from "./progress.js";
import type { Observer } from "./trace.js";

/** What `Image.…` makes, for `config.image`. A plain string means the same as `prepared`. */
export type ImageSpec =
  | {
      /** An image that the provider has built before; on Runloop a blueprint. */
      readonly kind: "prepared";
      /** Its name or id. */
      readonly name: string;
    }
  | {
      /** An image of a registry. Not supported by every provider. */
      readonly kind: "oci";
      /** For example `docker.io/library/node:22`. */
      readonly reference: string;
    }
  | {
      /** An image to be built. Not supported by every provider. */
      readonly kind: "build";
      /** How, in the provider's terms. */
      readonly definition: unknown;
    };

/** The network of a sandbox. An empty allowlist allows nothing. */
export type NetworkSpec =
  | "blocked"
  | "internet"
  | {
      /** Hosts and ranges, such as `api.github.com`, `*.github.com` or `10.0.0.0/8`. */
      readonly allow: readonly string[];
    };

/** A setting's place and meaning, for tools that ask a person for it. */
export interface SetupEntry {
  /** Environment variable the setting is usually kept in. */
  readonly environmentVariable?: string;
  /** One sentence. */
  readonly description: string;
  /** Where to get it or read about it. */
  readonly link?: string;
  /** Whether a connection cannot be made without it. */
  readonly required: boolean;
}

/** The credentials and settings of an adapter, by name. */
export interface AdapterSetup {
  /** What proves who connects. */
  readonly credentials: Readonly<Record<string, SetupEntry>>;
  /** What every sandbox of a connection gets. */
  readonly config: Readonly<Record<string, SetupEntry>>;
}

/** What {@link Adapter.connect} takes. The adapter refuses unknown keys inside, by name. */
export interface ConnectInput {
  /** What {@link AdapterSetup.credentials} names. */
  readonly credentials?: unknown;
  /** What {@link AdapterSetup.config} names. */
  readonly config?: unknown;
  /** Stops the attempt: it rejects with `CANCELLED`. */
  readonly signal?: AbortSignal;
  /** Is told of requests, where the adapter can tell of them. */
  readonly observer?: Observer;
}

/** A provider's adapter: a plain object, safe to share. */
export interface Adapter {
  /** Short lower-case name; part of every reference. */
  readonly provider: string;
  /** Version of this interface. */
  readonly contract: 1;
  /** What a person must know to fill in credentials and settings. */
  readonly setup: AdapterSetup;
  /** Whether credentials and config are bound already, so that `connect` takes neither. */
  readonly bound?: boolean;
  /** Checks the credentials with the provider and resolves to a connection. */
  connect(input: ConnectInput): Promise<AdapterConnection>;
}

/** Options of every call that waits. */
export interface Call {
  /**
   * Stops the call: it rejects with `CANCELLED` whose `cause` is the signal's
   * reason. A mutation that was sent already is not undone (a command is
   * killed once, because the caller has no handle on it).
   */
  readonly signal?: AbortSignal;
  /**
   * Told how far the call has come, as often as the adapter likes, while it
   * runs and not after it has settled; it never throws. The client tells of
   * `submitting` and `done`; everything between is the adapter's. Given to
   * `createSandbox`, `waitForSandbox`, `captureSnapshot`, `waitForSnapshot`,
   * `readFile` and `writeFile` only.
   */
  readonly onProgress?: (progress: Progress) => void;
  /** The id of the operation that the call is for, to tell {@link ConnectInput.observer}; given while that is active. */
  readonly operationId?: string;
}

/** Values that identify one submission; sent to the provider as metadata. */
export interface Markers {
  /** Random id of the operation that the caller asked for. */
  readonly operation: string;
  /** Random id of this submission of it. */
  readonly submission: string;
}

/** States of a sandbox. `unknown` is a state that this version does not know. */
export type SandboxState =
  | "starting"
  | "running"
  | "suspending"
  | "suspended"
  | "resuming"
  | "failed"
  | "destroyed"
  | "unknown";

/** A setting that the provider echoes differently from what was asked. */
export interface Difference {
  /** Its dotted path, for example `lifecycle.lifetimeSeconds`. */
  readonly setting: string;
  /** What was asked for. */
  readonly requested: unknown;
  /** What the provider reports. */
  readonly reported: unknown;
}

/** A sandbox as the provider reports it. */
export interface SandboxRecord {
  /** The provider's id. */
  readonly id: string;
  /** The state in the client's terms. */
  readonly state: SandboxState;
  /** The provider's own word for the state. */
  readonly providerState: string;
  /** Milliseconds since the epoch; `null` where the provider does not say. */
  readonly createdAtMs: number | null;
  /** Markers in the provider's metadata; `null` where there are none. */
  readonly markers: Markers | null;
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
  /** Empty where the provider echoes what was asked, or echoes nothing. */
  readonly differences: readonly Difference[];
  /** The snapshot it was restored from. */
  readonly snapshotId: string | null;
  /** `null` or absent where the provider keeps none. */
  readonly labels?: Readonly<Record<string, string>> | null;
  /** Mounted volumes; absent where the provider does not say. */
  readonly mounts?: readonly MountSpec[];
}

/** A volume at a path. */
export interface MountSpec {
  /** The provider's id of the volume. */
  readonly volumeId: string;
  /** Absolute and normalized, in the sandbox. */
  readonly path: string;
  /** A folder of the volume instead of all of it. */
  readonly subpath?: string;
  /** Whether writes fail. */
  readonly readOnly: boolean;
}

/** Create, or restore where `snapshotId` is given. */
export interface CreateSandboxRequest {
  /** Kept by the provider beside the sandbox, so that it can be found. */
  readonly markers: Markers;
  /** Variables of every command in the sandbox. */
  readonly env?: Readonly<Record<string, string>>;
  /** When it ends; the connection's own when omitted. */
  readonly lifecycle?: {
    /** More than 0. The range is the provider's. */
    readonly lifetimeSeconds?: number;
  };
  /** A network the connection supports; the connection's own when omitted. */
  readonly network?: NetworkSpec;
  /** Restores this snapshot instead of starting from the configured image. */
  readonly snapshotId?: string;
  /** The rest only where `capabilities()` says that it is supported. */
  readonly mounts?: readonly MountSpec[];
  /** Text by name, beside the markers. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The provider's name of a region. */
  readonly region?: string;
}

/** Which page of a list. */
export interface PageRequest {
  /** Items per page; the adapter caps it at the provider's maximum. */
  readonly limit: number;
  /** Opaque, from the page before. */
  readonly cursor?: string;
}

/** One page of a list. */
export interface Page<Item> {
  /** In the order of the provider. */
  readonly items: readonly Item[];
  /** `null` on the last page. */
  readonly cursor: string | null;
  /** Whether this page says everything that it should; the reason where not. */
  readonly coverage: {
    /** `false` where items may be missing. */
    readonly complete: boolean;
    /** Why they may be, as a sentence. */
    readonly reason?: string;
  };
}

/** A command to run to its end. */
export interface ExecRequest {
  /** The provider's id of the sandbox. */
  readonly sandboxId: string;
  /** An array is argv, a string is shell text. */
  readonly command: string | readonly string[];
  /** Absolute, or relative to the user's home; the home when omitted. */
  readonly cwd?: string;
  /** Variables added to the sandbox's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Copied before the call returns. */
  readonly stdin?: Uint8Array;
  /** More than 0, at most 3,600; 600 when omitted. */
  readonly timeoutSeconds?: number;
  /** 0 to 1,048,576 for each stream; 1,048,576 when omitted. */
  readonly maxOutputBytes?: number;
}

/** How a command ended, whatever its exit code. Bytes are what the command wrote, cut at `maxOutputBytes`. */
export interface ExecRecord {
  /** 0 to 255; 128 plus the signal's number for a command that a signal ended. */
  readonly exitCode: number;
  /** Standard output, cut at `maxOutputBytes`. */
  readonly stdout: Uint8Array;
  /** Standard error, cut at `maxOutputBytes`. */
  readonly stderr: Uint8Array;
  /** True lengths, also where a stream was cut. */
  readonly stdoutBytes: number;
  /** As `stdoutBytes`. */
  readonly stderrBytes: number;
  /** Whether `stdout` was cut. */
  readonly stdoutTruncated: boolean;
  /** Whether `stderr` was cut. */
  readonly stderrTruncated: boolean;
  /** Wall-clock time of the call. */
  readonly durationMs: number;
}

/** A command to start and leave running, with live output. */
export interface StartRequest {
  /** The provider's id of the sandbox. */
  readonly sandboxId: string;
  /** An array is argv, a string is shell text. */
  readonly command: string | readonly string[];
  /** Absolute, or relative to the user's home; the home when omitted. */
  readonly cwd?: string;
  /** Variables added to the sandbox's own. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A process that was started before, here or by another program. */
export interface OpenProcessRequest {
  /** The provider's id of the sandbox. */
  readonly sandboxId: string;
  /** The provider's id of the process. */
  readonly processId: string;
  /** Offsets as the provider's stream counts; 0 is the start. */
  readonly stdoutOffset?: number;
  /** As `stdoutOffset`. */
  readonly stderrOffset?: number;
}

/** Text that a process wrote, in the order in which it arrived. A piece is no line. */
export interface OutputPiece {
  /** Which stream it was written to. */
  readonly stream: "stdout" | "stderr";
  /** Whole characters of UTF-8; never empty. */
  readonly text: string;
}

/** One view of a live process's output, in batches. */
export interface OutputReader {
  /** Next pieces, or `null` at the end. Calls settle in the order in which they were made. */
  nextBatch(): Promise<readonly OutputPiece[] | null>;
  /** Stops reading and settles pending calls with `null`, at once. */
  cancel(): void;
}

/** How a live process ended. */
export interface ProcessExit {
  /** 0 to 255; 128 plus the signal's number for a process that a signal ended. */
  readonly exitCode: number;
  /** Whether everything that the process wrote was received. */
  readonly output: "complete" | "incomplete";
}

/** Whether a process runs. */
export interface ProcessStatus {
  /** `exited` as soon as the provider says so. */
  readonly state: "running" | "exited";
  /** 0 to 255; `null` while it runs. */
  readonly exitCode: number | null;
}

/** How far each stream was read, as the provider counts. */
export interface StreamOffsets {
  /** Of standard output; 0 is the start. */
  readonly stdout: number;
  /** Of standard error; 0 is the start. */
  readonly stderr: number;
}

/** A command with live output. */
export interface AdapterProcess {
  /** The provider's id. */
  readonly id: string;
  /** A view of its own from the offset at which the process was opened; several may read at once. */
  read(which: "stdout" | "stderr" | "output"): OutputReader;
  /** Waits, by reading only, until the process has ended. Repeatable. */
  wait(call?: Call): Promise<ProcessExit>;
  /** Asks once. `exitCode` is `null` while it runs. */
  status(call?: Call): Promise<ProcessStatus>;
  /**
   * Kills the process group with SIGKILL, once, and resolves when the provider
   * has taken the kill. A process that has ended is no error.
   */
  kill(call?: Call): Promise<void>;
  /** As `kill`, and resolves when the provider reports the end. */
  terminate(call?: Call): Promise<ProcessExit>;
  /** Stops everything of ours; the process goes on. */
  detach(): void;
  /** How far each stream was read, for {@link OpenProcessRequest}. */
  offsets(): StreamOffsets;
}

/** A file to write, in place of what is there. */
export interface WriteFileRequest {
  /** The provider's id of the sandbox. */
  readonly sandboxId: string;
  /** Absolute, or relative to the user's home. */
  readonly path: string;
  /** Copied before the call returns. */
  readonly content: Uint8Array;
  /** Permission bits, for example `0o755`. Omitted: an existing file's are kept. */
  readonly mode?: number;
}

/** Where a port of a sandbox is reached from outside. */
export interface PreviewRecord {
  /** Ends in no slash. */
  readonly url: string;
  /** `public` is open to everyone who has the URL. */
  readonly access: "protected" | "public";
  /** What a request must carry; empty for a public preview. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A snapshot as the provider reports it. */
export interface SnapshotRecord {
  /** The provider's id. */
  readonly id: string;
  /** Only a `ready` one can be restored; `unknown` is a state that this version does not know. */
  readonly state: "creating" | "ready" | "failed" | "deleted" | "unknown";
  /** The provider's own word for the state. */
  readonly providerState: string;
  /** Milliseconds since the epoch; `null` where the provider does not say. */
  readonly createdAtMs: number | null;
  /** Markers in the provider's metadata; `null` where there are none. */
  readonly markers: Markers | null;
  /** The sandbox that was captured; `null` where the provider does not say. */
  readonly sourceSandboxId: string | null;
  /** The provider's reason, for a failed snapshot. */
  readonly reason: string | null;
  /** `null` where the provider does not say. */
  readonly sizeBytes: number | null;
  /** `null` or absent where it is kept until it is deleted. */
  readonly expiresAtMs?: number | null;
  /** `null` or absent where the provider keeps none. */
  readonly labels?: Readonly<Record<string, string>> | null;
}

/** A snapshot to take of a sandbox. */
export interface CaptureRequest {
  /** The provider's id of the sandbox. */
  readonly sandboxId: string;
  /** Kept by the provider beside the snapshot, so that it can be found. */
  readonly markers: Markers;
  /** Text by name, beside the markers. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** A bounded search for what one submission made. */
export interface FindRequest {
  /** Of the submission. */
  readonly markers: Markers;
  /** Only what was made of this sandbox. */
  readonly sourceSandboxId?: string;
}

/** What a search found. Only one that is `complete` shows that nothing was made. */
export interface FindResult<Item> {
  /** Every item whose markers are exactly these. */
  readonly matches: readonly Item[];
  /** How much was looked at. */
  readonly searched: {
    /** Items of all pages. */
    readonly items: number;
    /** `false` where the bound on pages was reached first. */
    readonly complete: boolean;
  };
}

/** Whether there was something to do. */
export interface PowerRecord {
  /** `true`: it was in that state already, and nothing was done. */
  readonly alreadyThere: boolean;
}

/** Whether there was something to end. */
export interface EndRecord {
  /** `true`: the provider had it no longer. */
  readonly alreadyGone: boolean;
}

type OfSandbox = { readonly sandboxId: string };
type OfSnapshot = { readonly snapshotId: string };

/** A connection to one account of a provider. Made by {@link Adapter.connect}. */
export interface AdapterConnection {
  /** What everything of this connection belongs to. */
  readonly scope: {
    /** The provider's id of the account. */
    readonly account: string;
  };
  /** Computed without a request; the same for the connection's whole life. */
  capabilities(): Capabilities;

  /** Submits, once, and resolves with the provider's first answer; the sandbox may still be starting. */
  createSandbox(request: CreateSandboxRequest, call?: Call): Promise<SandboxRecord>;
  /** Waits, by reading only, until the state is reached; rejects when it ends elsewhere. Repeatable. */
  waitForSandbox(
    request: OfSandbox & { readonly state: "running" | "suspended" | "destroyed" },
    call?: Call,
  ): Promise<SandboxRecord>;
  /** Rejects with `NOT_FOUND` where the provider no longer knows it. */
  inspectSandbox(request: OfSandbox, call?: Call): Promise<SandboxRecord>;
  /** One page, in the order of the provider. `state` is filtered before the page is cut, where the provider can. */
  listSandboxes(
    request: PageRequest & { readonly state?: SandboxState },
    call?: Call,
  ): Promise<Page<SandboxRecord>>;
  /** Submits, once; `waitForSandbox` observes. `alreadyThere`: nothing was to be done. */
  suspendSandbox(request: OfSandbox, call?: Call): Promise<PowerRecord>;
  /** Submits, once; `waitForSandbox` observes. `alreadyThere`: it runs already. */
  resumeSandbox(request: OfSandbox, call?: Call): Promise<PowerRecord>;
  /** Submits, once; `waitForSandbox` observes. */
  destroySandbox(request: OfSandbox, call?: Call): Promise<EndRecord>;

  /** Resolves whatever the exit code. Sent once; a lost answer is `OUTCOME_UNKNOWN`. */
  exec(request: ExecRequest, call?: Call): Promise<ExecRecord>;
  /** Resolves when the provider has started it. Sent once. */
  startProcess(request: StartRequest, call?: Call): Promise<AdapterProcess>;
  /** Sends nothing that changes the process. Rejects with `NOT_FOUND` where it is not known. */
  openProcess(request: OpenProcessRequest, call?: Call): Promise<AdapterProcess>;

  /** The whole file. Rejects with `FILE_ERROR` and a reason, for example `not_found`. */
  readFile(request: OfSandbox & { readonly path: string }, call?: Call): Promise<Uint8Array>;
  /** Replaces the file in one step. */
  writeFile(request: WriteFileRequest, call?: Call): Promise<void>;

  /** Makes the port reachable, or finds that it is. `port` is 1 to 65,535; nothing needs to listen there yet. */
  preview(request: OfSandbox & { readonly port: number }, call?: Call): Promise<PreviewRecord>;

  /** Submits, once, and resolves with the provider's first answer. */
  captureSnapshot(request: CaptureRequest, call?: Call): Promise<SnapshotRecord>;
  /** Waits, by reading only, until the snapshot is ready. Repeatable. */
  waitForSnapshot(request: OfSnapshot, call?: Call): Promise<SnapshotRecord>;
  /** Rejects with `NOT_FOUND` where the provider no longer knows it. */
  inspectSnapshot(request: OfSnapshot, call?: Call): Promise<SnapshotRecord>;
  /** One page, in the order of the provider. */
  listSnapshots(request: PageRequest, call?: Call): Promise<Page<SnapshotRecord>>;
  /** Submits, once. `alreadyGone`: there was nothing to delete. */
  deleteSnapshot(request: OfSnapshot, call?: Call): Promise<EndRecord>;

  /** Only where `capabilities().volumes` says that it is supported. */
  readonly volumes?: AdapterVolumes;

  /** Reads only; a bounded number of pages. */
  findSandboxes(request: FindRequest, call?: Call): Promise<FindResult<SandboxRecord>>;
  /** Reads only; a bounded number of pages. */
  findSnapshots(request: FindRequest, call?: Call): Promise<FindResult<SnapshotRecord>>;

  /** Ends the connection: reads reject with `CLOSED`, mutations in flight with `OUTCOME_UNKNOWN`. */
  close(): Promise<void>;
}
