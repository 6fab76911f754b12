/** What `create` and `restore` have in common: the options of a new sandbox, and how one is made. */

import type { CreateSandboxRequest, MountSpec, NetworkSpec, SandboxRecord } from "./adapter.js";
import {
  callback,
  environment,
  invalid,
  isRecord,
  knownKeys,
  labelsOf,
  number,
  optional,
  text,
  typeOf,
} from "./arguments.js";
import type { OperationName } from "./calls.js";
import { type Feature, unsupported } from "./capabilities.js";
import type { Connection } from "./connection.js";
import { type MountDescriptor, mountRecords, mountsOf, readyVolumes } from "./mounts.js";
import { beforeSending, type Mutation, type MutationOptions } from "./operations.js";
import { limited, type ProgressOptions } from "./progress.js";
import type { SnapshotReference } from "./references.js";
import type { SandboxHandle } from "./sandbox-handle.js";

/** Options of every new sandbox. */
export interface NewSandboxOptions extends MutationOptions, ProgressOptions {
  /** Environment variables of every command in the sandbox. Never kept in references or messages. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Seconds until the provider ends the sandbox; the connection's own when omitted. */
  readonly lifecycle?:
    | {
        /** More than 0; on Runloop a whole number from 60 to 172,800. */
        readonly lifetimeSeconds?: number | undefined;
      }
    | undefined;
  /** One that the connection supports; the connection's own when omitted. */
  readonly network?: NetworkSpec | undefined;
  /** Not supported by every provider. */
  readonly labels?: Readonly<Record<string, string | undefined>> | undefined;
  /**
   * Volumes at paths, from `volume.at(path)`. Paths are absolute, normalized,
   * apart from each other and outside the provider's reserved ones; together at
   * most 16,384 bytes as JSON. Not supported by every provider.
   */
  readonly mounts?: readonly MountDescriptor[] | undefined;
}

type Request = Omit<CreateSandboxRequest, "markers">;
type Given = {
  readonly [Key in "env" | "lifecycle" | "network" | "labels" | "mounts" | "region"]?: unknown;
};

/** Checks the options of a new sandbox; what is empty counts as omitted. */
export function newSandboxRequest(
  connection: Connection,
  operation: OperationName,
  given: Given,
): Request {
  return {
    ...optional("env", given.env, environment),
    ...optional("lifecycle", given.lifecycle, lifecycleOf),
    ...optional("network", given.network, (value) => networkOf(connection, operation, value)),
    ...optional("labels", given.labels, labelsOf),
    ...optional("region", given.region, (value) => text("region", value)),
    ...optional("mounts", given.mounts, (value) => mountsOf(connection, operation, value)),
  };
}

/** Refuses an option that the feature's leaf does not list. */
export function acceptOptions(
  connection: Connection,
  operation: OperationName,
  feature: Feature,
  options: readonly string[],
): void {
  const leaf = connection.require(operation, feature);
  if (leaf.status !== "supported" || leaf.options === undefined) return;
  for (const option of options) {
    if (leaf.options.includes(option)) continue;
    const accepted = leaf.options.join(", ") || "no options";
    throw unsupported(
      connection.provider,
      operation,
      `${feature}.${option}`,
      `It accepts ${accepted} on this connection.`,
    );
  }
}

/** The mutation that makes a sandbox, new or from a snapshot, and waits until it runs. */
export function newSandbox(
  connection: Connection,
  options: {
    readonly signal?: unknown;
    readonly onSubmit?: unknown;
    readonly onProgress?: unknown;
  },
  request: Request,
  target?: SnapshotReference,
): Mutation<SandboxRecord, SandboxHandle> {
  const mounts = mountRecords(request.mounts ?? []);
  const kind = target === undefined ? "sandbox_create" : "snapshot_restore";
  const tell = connection.checked(kind, () => limited(callback("onProgress", options.onProgress)));
  const telling = tell === undefined ? {} : { onProgress: tell };
  return {
    kind,
    ...(target === undefined ? {} : { target }),
    options,
    mounts,
    send: ({ markers }, call) => {
      tell?.({ phase: "submitting" });
      return sendCreate(connection, { ...request, markers }, { ...call, ...telling });
    },
    known: (record, { ownership }) => {
      connection.remember("sandbox", record.id, ownership);
      return { sandbox: connection.sandboxReference(record.id, ownership, mounts) };
    },
    finish: async (record, call, { ownership }) => {
      if (record.state !== "running") {
        tell?.({ phase: "waiting", state: record.providerState });
        const waiting = { sandboxId: record.id, state: "running" } as const;
        await connection.adapter.waitForSandbox(waiting, { ...call, ...telling });
      }
      tell?.({ phase: "done" });
      const reference = connection.sandboxReference(record.id, ownership, mounts);
      return connection.handles.sandbox(connection, reference);
    },
  };
}

/** Without mounts the request goes out at once; with mounts the volumes are looked at first. */
function sendCreate(
  connection: Connection,
  request: CreateSandboxRequest,
  call: { readonly signal?: AbortSignal },
): Promise<SandboxRecord> {
  const mounts: readonly MountSpec[] | undefined = request.mounts;
  if (mounts === undefined) return connection.adapter.createSandbox(request, call);
  return beforeSending(readyVolumes(connection, mounts, call)).then(() =>
    connection.adapter.createSandbox(request, call),
  );
}

function networkOf(connection: Connection, operation: OperationName, value: unknown): NetworkSpec {
  const network = networkSpec(value);
  const kind = typeof network === "string" ? network : "allow";
  connection.require(operation, `network.${kind}`);
  return network;
}

function networkSpec(value: unknown): NetworkSpec {
  if (value === "blocked" || value === "internet") return value;
  if (!isRecord(value)) {
    const given = typeof value === "string" ? "another string" : typeOf(value);
    throw invalid(`network must be "blocked", "internet" or { allow: [...] }, not ${given}.`);
  }
  knownKeys("network", value, ["allow"]);
  if (!Array.isArray(value["allow"])) throw invalid("network.allow must be an array of strings.");
  return { allow: value["allow"].map((host, index) => text(`network.allow[${index}]`, host)) };
}

/** An empty life cycle counts as omitted. The range is the adapter's to check. */
function lifecycleOf(value: unknown): { lifetimeSeconds: number } | undefined {
  if (!isRecord(value)) {
    throw invalid(`lifecycle must be { lifetimeSeconds }, not ${typeOf(value)}.`);
  }
  knownKeys("lifecycle", value, ["lifetimeSeconds"]);
  if (value["lifetimeSeconds"] === undefined) return undefined;
  return {
    lifetimeSeconds: number("lifecycle.lifetimeSeconds", value["lifetimeSeconds"], {
      moreThan: 0,
      max: Number.MAX_SAFE_INTEGER,
    }),
  };
}
