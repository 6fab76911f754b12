/**
 * The Runloop adapter: drives Runloop Devboxes through Runloop's REST API v1,
 * from a native addon. Pass it to `Beachside.connect`.
 */

import type { Adapter, ImageSpec } from "./client/dist/adapter.js";
import type { Preserve } from "./client/dist/preserve.js";

export type * from "./client/dist/adapter.js";
export type * from "./client/dist/capabilities.js";
export type {
  ErrorCode,
  ErrorDetails,
  ErrorResource,
  UnmetRequirement,
  UnsupportedDetails,
} from "./client/dist/errors.js";
export { BeachsideError, isBeachsideError, UnsupportedFeatureError } from "./client/dist/errors.js";
export type * from "./client/dist/outcome.js";
export { Preserve } from "./client/dist/preserve.js";
export type * from "./client/dist/references.js";

/** Who connects, and to where. An unknown key is refused with the nearest known one. */
export interface RunloopCredentials {
  /**
   * API key of the account, made in the Runloop dashboard; usually
   * `process.env.RUNLOOP_API_KEY`. It is sent as a bearer token to `baseUrl`
   * and nowhere else, and appears in no error, reference or inspection.
   */
  readonly apiKey: string;
  /**
   * Address of the API. Default: the environment variable `RUNLOOP_BASE_URL`,
   * then `https://api.runloop.ai`. It must be https; http is accepted for the
   * loopback addresses of this machine only.
   */
  readonly baseUrl?: string | undefined;
  /**
   * Domain of preview addresses, `{port}-{key}.{tunnelDomain}`. Default:
   * `tunnel.` and the host of `baseUrl` without a leading `api.`; for a `baseUrl`
   * on this machine `tunnel.localhost` with its port, where a simulator listens.
   */
  readonly tunnelDomain?: string | undefined;
}

/**
 * What every sandbox of a connection gets. All of it is checked when the
 * connection is made: a wrong type, a value out of range or an unknown key is
 * `INVALID_ARGUMENT`, and what Runloop cannot do is `UNSUPPORTED`.
 */
export interface RunloopConfig {
  /**
   * What sandboxes may reach. Default `"blocked"`: a network policy named
   * `beachside-blocked`, which allows nothing, is created on first use and
   * checked again before each create and restore; if what carries the name
   * allows something, the create is refused. `"internet"` attaches no policy.
   * An allowlist (`{ allow }`) is `UNSUPPORTED`.
   */
  readonly network?: "blocked" | "internet" | undefined;
  /**
   * What sandboxes start from. Default `"runloop-default"`, Runloop's own
   * image. Any other string, or `Image.prepared(name)`, is a blueprint: by id
   * where one has that id, else by name. `Image.oci` and `Image.build` are
   * `UNSUPPORTED`.
   */
  readonly image?: string | ImageSpec | undefined;
  /**
   * The least that a sandbox needs. The smallest of Runloop's sizes that has
   * both is taken: 0.5 vCPU and 1 GiB, 1 and 2, 2 and 4, 2 and 8, 4 and 16,
   * 8 and 32, 16 and 32, 16 and 64. Either may be left out; without both,
   * Runloop's default. More than 16 vCPU or 65,536 MiB is refused.
   */
  readonly resources?: {
    /** More than 0, at most 16. */
    readonly vcpus?: number | undefined;
    /** More than 0, at most 65,536. */
    readonly memoryMiB?: number | undefined;
  };
  /**
   * When a sandbox ends, or sleeps. One of the two:
   *
   * - `lifetimeSeconds`, 60 to 172,800, default 900: shut down then, whatever
   *   it does. `create({ lifecycle })` and `restore({ lifecycle })` override it.
   * - `idleSeconds`, 1 to 172,800: suspended after so long without activity.
   */
  readonly lifecycle?:
    | {
        /** A whole number from 60 to 172,800; 900 when omitted. */
        readonly lifetimeSeconds?: number | undefined;
        /** What a suspended sandbox keeps. */
        readonly suspension?: RunloopSuspension;
      }
    | {
        /** A whole number from 1 to 172,800. */
        readonly idleSeconds: number;
        /** What a suspended sandbox keeps. */
        readonly suspension?: RunloopSuspension;
      };
  /**
   * Who may open previews. Default `"protected"`: who sends the header that
   * `preview()` gives. `"public"`: everybody who knows the address.
   */
  readonly preview?: {
    /** `"protected"` when omitted. */
    readonly access?: "protected" | "public";
  };
  /** What snapshots keep. Runloop keeps the disk only; anything else is `UNSUPPORTED`. */
  readonly snapshots?: {
    /** `Preserve.FILESYSTEM`, which is the default and the only one. */
    readonly preserve?: typeof Preserve.FILESYSTEM;
  };
  /**
   * How long calls wait. A wait that ends is `DEADLINE_EXCEEDED`, with the
   * reference of what was being waited for; nothing is undone.
   */
  readonly timeouts?: RunloopTimeouts | undefined;
}

/** What a suspended sandbox keeps. Runloop keeps the disk only; anything else is `UNSUPPORTED`. */
export interface RunloopSuspension {
  /** `Preserve.FILESYSTEM`, which is the default and the only one. */
  readonly preserve?: typeof Preserve.FILESYSTEM | undefined;
}

/** Seconds, each more than 0 and at most 86,400. */
export interface RunloopTimeouts {
  /**
   * Making one connection: name, TCP, proxy and TLS together. Default 10.
   * Where nothing answers, a read waits twice as long and a mutation this long.
   */
  readonly connectSeconds?: number | undefined;
  /**
   * Silence of the server: until an answer begins, and between two pieces of
   * it. What a long poll lets it hold back comes on top. Default 30.
   * An answer that trickles in is given up after ten times as long.
   */
  readonly requestSeconds?: number | undefined;
  /** Create, restore and resume, until the sandbox runs. Default 600. */
  readonly startSeconds?: number | undefined;
  /** Suspend until suspended, destroy until shut down. Default 120. */
  readonly stopSeconds?: number | undefined;
  /** A snapshot, until it is ready. Default 900. */
  readonly captureSeconds?: number | undefined;
}

/** What {@link runloop} takes: credentials and settings side by side. */
export type RunloopOptions = RunloopCredentials & RunloopConfig;

/**
 * The adapter. `connect` asks Runloop for the account of the key, once, and
 * everything else is scoped to that account.
 *
 * ```js
 * const client = await Beachside.connect({
 *   adapter: runloopAdapter,
 *   credentials: { apiKey: process.env.RUNLOOP_API_KEY },
 *   config: { network: "blocked" },
 * });
 * ```
 *
 * It rejects with `INVALID_ARGUMENT` or `UNSUPPORTED` for settings, before
 * anything is sent; `UNAUTHENTICATED` for a key that is not accepted;
 * `PERMISSION_DENIED`, also for an account that is not enabled; `UNAVAILABLE`
 * when Runloop cannot be reached; `NATIVE_BINARY_MISSING` when the package has
 * no binary for this platform.
 */
export declare const runloopAdapter: Adapter & {
  /** Part of every reference. */
  readonly provider: "runloop";
};

/**
 * The adapter with credentials and settings bound to it:
 * `Beachside.connect(runloop({ apiKey, network: "internet" }))`.
 *
 * The options are copied at the call.
 *
 * @throws BeachsideError `INVALID_ARGUMENT` for what is no plain data, such as
 *   a function or a class instance. Everything else is checked by `connect`.
 */
export declare function runloop(options: RunloopOptions): Adapter & {
  /** Part of every reference. */
  readonly provider: "runloop";
  /** It has its settings already: `connect` takes it alone. */
  readonly bound: true;
};
