/**
 * Volumes at paths: checks that hold for every provider, and what a mounted
 * sandbox means for its destruction.
 */

import type { MountSpec } from "./adapter.js";
import { flag, invalid, isRecord, knownKeys, optional, quote, text } from "./arguments.js";
import type { OperationName } from "./calls.js";
import { behaviorOf, type MountBehavior, unsupported } from "./capabilities.js";
import type { Connection } from "./connection.js";
import { BeachsideError } from "./errors.js";
import { validateResourceReference } from "./reference-checks.js";
import {
  MAX_MOUNTS_JSON_BYTES,
  type MountRecord,
  type SandboxReference,
  type StoragePolicy,
  type VolumeReference,
} from "./references.js";

/** Where to mount a volume. `volume.at()` makes one; making one asks no provider. */
export interface MountDescriptor {
  /** Which volume. */
  readonly volume: VolumeReference;
  /** Absolute and normalized, in the sandbox. */
  readonly path: string;
  /** A folder of the volume to mount instead of all of it. */
  readonly subpath?: string;
  /** Whether writes fail. */
  readonly readOnly: boolean;
}

/** Makes a descriptor, with every check that needs no connection. */
export function mountDescriptor(volume: VolumeReference, path: unknown, options: unknown) {
  if (options !== undefined && !isRecord(options)) {
    throw invalid("volume.at: options must be a plain object.");
  }
  if (options !== undefined) knownKeys("volume.at: options", options, ["subpath", "readOnly"]);
  return Object.freeze({
    volume,
    path: mountPath("path", path),
    ...optional("subpath", options?.["subpath"], subpathOf),
    readOnly: flag("readOnly", options?.["readOnly"]),
  });
}

/**
 * The mounts of a create or restore; `undefined` for none.
 *
 * @throws BeachsideError `INVALID_ARGUMENT` for wrong descriptors and for the
 *   older share/replace/omit maps, `UNSUPPORTED` for what the provider lacks.
 */
export function mountsOf(
  connection: Connection,
  operation: OperationName,
  value: unknown,
): readonly MountSpec[] | undefined {
  if (value === undefined) return undefined;
  if (isRecord(value)) {
    if (Object.keys(value).length === 0) return undefined;
    throw invalid(
      "mounts must be an array such as [volume.at(path)]; share, replace and omit maps are no longer accepted.",
    );
  }
  if (!Array.isArray(value)) throw invalid("mounts must be an array such as [volume.at(path)].");
  if (value.length === 0) return undefined;
  const specs = value.map((each, index) => mountSpec(connection, `mounts[${index}]`, each));
  const leaf = connection.require<MountBehavior>(operation, "volumes.mount");
  const behavior = behaviorOf(leaf);
  for (const spec of specs) fits(connection, operation, spec, behavior);
  disjoint(specs);
  if (Buffer.byteLength(JSON.stringify(mountRecords(specs))) > MAX_MOUNTS_JSON_BYTES) {
    throw invalid(
      `mounts are longer than ${MAX_MOUNTS_JSON_BYTES} bytes as JSON, which is the limit of a saved reference.`,
    );
  }
  return specs;
}

/** What a reference records of mounts. */
export function mountRecords(specs: readonly MountSpec[]): readonly MountRecord[] {
  return specs.map(({ volumeId, path, subpath, readOnly }) => ({
    volume: volumeId,
    path,
    ...(subpath === undefined ? {} : { subpath }),
    readOnly,
  }));
}

/** Refuses a mount of a volume that is not there or not ready. Reads only. */
export async function readyVolumes(
  connection: Connection,
  specs: readonly MountSpec[] | undefined,
  call: { readonly signal?: AbortSignal },
): Promise<void> {
  for (const volumeId of new Set(specs?.map((spec) => spec.volumeId))) {
    const record = await connection.adapter.volumes?.inspect({ volumeId }, call);
    if (record === undefined || record.state === "ready") continue;
    throw new BeachsideError(`The volume ${quote(volumeId)} is not ready: it is ${record.state}.`, {
      code: "CONFLICT",
      resource: { kind: "volume", id: volumeId },
    });
  }
}

/**
 * Whether writes to a sandbox's volumes are known to be durable when it is
 * destroyed, after holding the policy to it.
 *
 * @throws UnsupportedFeatureError where the policy requires durability and the
 *   provider cannot confirm it. Nothing was sent.
 */
export function mountDurability(
  connection: Connection,
  { mounts }: SandboxReference,
  policy: StoragePolicy,
): "not_applicable" | "confirmed" | "unconfirmed" {
  const leaf = connection.capability<MountBehavior>("volumes.mount");
  if (leaf.status === "unsupported") return "not_applicable";
  if (mounts !== "unknown" && mounts.every((mount) => mount.readOnly)) return "not_applicable";
  if (behaviorOf(leaf)?.durability === "confirmed") return "confirmed";
  if (policy === "allow-unconfirmed") return "unconfirmed";
  const what =
    mounts === "unknown"
      ? "Whether it has mounted volumes is not known"
      : "It has writable volumes";
  throw unsupported(
    connection.provider,
    "sandbox_destroy",
    "cleanup.storage",
    `${what}, and the provider cannot confirm that their data is durable. Finish the writes and pass storage: "allow-unconfirmed".`,
  );
}

function mountSpec(connection: Connection, at: string, value: unknown): MountSpec {
  if (!isRecord(value)) throw invalid(`${at} must be what volume.at(path) gives.`);
  knownKeys(at, value, ["volume", "path", "subpath", "readOnly"]);
  const volume = validateResourceReference(value["volume"]);
  if (volume.kind !== "volume") throw invalid(`${at}.volume is the reference of a ${volume.kind}.`);
  connection.inScope(volume);
  return {
    volumeId: volume.id,
    path: mountPath(`${at}.path`, value["path"]),
    ...optional("subpath", value["subpath"], subpathOf),
    readOnly: flag(`${at}.readOnly`, value["readOnly"]),
  };
}

function mountPath(what: string, value: unknown): string {
  const path = text(what, value);
  if (!path.startsWith("/")) throw invalid(`${what} must be absolute: ${quote(path)}.`);
  if (path === "/") throw invalid(`${what} must not be the root folder.`);
  if (!isNormalized(path.slice(1))) throw notNormalized(what, path);
  return path;
}

function subpathOf(value: unknown): string {
  const path = text("subpath", value);
  if (path.startsWith("/")) throw invalid(`subpath must be relative: ${quote(path)}.`);
  if (!isNormalized(path)) throw notNormalized("subpath", path);
  return path;
}

function isNormalized(relative: string): boolean {
  return relative.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function notNormalized(what: string, path: string): BeachsideError {
  return invalid(`${what} must be normalized, without ".", ".." or empty parts: ${quote(path)}.`);
}

function within(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function disjoint(specs: readonly MountSpec[]): void {
  for (const [index, spec] of specs.entries()) {
    for (const other of specs.slice(index + 1)) {
      if (!within(spec.path, other.path) && !within(other.path, spec.path)) continue;
      throw invalid(`mounts overlap: ${quote(spec.path)} and ${quote(other.path)}.`);
    }
  }
}

function fits(
  connection: Connection,
  operation: OperationName,
  spec: MountSpec,
  behavior: MountBehavior | undefined,
): void {
  const reserved = behavior?.reservedPaths.find((folder) => within(spec.path, folder));
  if (reserved !== undefined) {
    throw invalid(`${quote(spec.path)} is at or below ${reserved}, which is reserved.`);
  }
  const lacks = (feature: string, reason: string) =>
    unsupported(connection.provider, operation, feature, reason);
  if (spec.subpath !== undefined && behavior?.subpath !== true) {
    throw lacks("volumes.mount.subpath", "Only whole volumes can be mounted.");
  }
  if (spec.readOnly && behavior?.readOnly !== true) {
    throw lacks("volumes.mount.readOnly", "Volumes can only be mounted writable.");
  }
}
