/** `client.volumes`: storage that outlives sandboxes, where the provider has it. */

import type { AdapterVolumes, VolumeRecord } from "./adapter-volumes.js";
import { invalid, optionsOf, text } from "./arguments.js";
import type { OperationName } from "./calls.js";
import type { Feature } from "./capabilities.js";
import type { Connection } from "./connection.js";
import { BeachsideError } from "./errors.js";
import { inspectsAs } from "./inspection.js";
import { type List, type ListOptions, list } from "./lists.js";
import { type MountDescriptor, mountDescriptor } from "./mounts.js";
import {
  type CallOptions,
  type Mutation,
  type MutationOptions,
  type Operation,
  perform,
  submit,
} from "./operations.js";
import { validateResourceReference } from "./reference-checks.js";
import type { Ownership, ResourceReference, VolumeReference } from "./references.js";
import { isoTime } from "./sandbox-info.js";
import type { DeleteResult } from "./snapshot-handle.js";

/** Options of `volumes.create`. */
export interface CreateVolumeOptions extends MutationOptions {
  /** Not empty. What else it must be is the provider's to say. */
  readonly name: string;
}

/** What a volume is, in lists and from `inspect()`. */
export interface VolumeInfo {
  /** For `client.volumes.get()`. */
  readonly reference: VolumeReference;
  /** Only a `ready` volume can be mounted. */
  readonly state: VolumeRecord["state"];
  /** The provider's own word for the state. */
  readonly providerState: string;
  /** As it was chosen. */
  readonly name: string;
  /** ISO 8601; `null` where the provider does not say. */
  readonly createdAt: string | null;
  /** Whether this application is proven to have made it. */
  readonly ownership: Ownership;
}

/**
 * `client.volumes`: storage that outlives sandboxes, where the provider has it.
 * Runloop has none: each call is `UNSUPPORTED`.
 *
 * ```js
 * const { volumes } = await client.capabilities();
 * if (volumes.create.status === "supported") await client.volumes.create({ name: "cache" });
 * ```
 */
export class Volumes {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Makes an empty volume. It may not be `ready` yet: `inspect()` says so. */
  async create(options: CreateVolumeOptions): Promise<VolumeHandle> {
    return await perform(this.#connection, this.#create(options));
  }

  /** Like {@link create}, without waiting for the provider. */
  async submitCreate(options: CreateVolumeOptions): Promise<Operation<VolumeHandle>> {
    return await submit(this.#connection, this.#create(options));
  }

  /** Reopens a saved reference; like `sandboxes.get()`. */
  get(reference: ResourceReference, options?: CallOptions): Promise<VolumeHandle> {
    const connection = this.#connection;
    return connection.read("volume_get", options, [], async (_, call) => {
      const volumes = adapterVolumes(connection, "volume_get", "volumes.get");
      const saved = validateResourceReference(reference);
      if (saved.kind !== "volume") {
        throw invalid(`volumes.get() takes the reference of a volume, not of a ${saved.kind}.`);
      }
      connection.inScope(saved);
      const record = await volumes.inspect({ volumeId: saved.id }, call);
      return new VolumeHandle(connection, foundVolume(connection, record, saved));
    });
  }

  /** The account's volumes. */
  list(options?: ListOptions): List<VolumeInfo> {
    const connection = this.#connection;
    return list(connection, options, {
      operation: "volume_list",
      keys: [],
      load: (page, _given, call) =>
        adapterVolumes(connection, "volume_list", "volumes.list").list(page, call),
      item: (record) => volumeInfo(record, foundVolume(connection, record)),
    });
  }

  #create(options: unknown): Mutation<VolumeRecord, VolumeHandle> {
    const connection = this.#connection;
    const { given, name, volumes } = connection.checked("volume_create", () => {
      const adapter = adapterVolumes(connection, "volume_create", "volumes.create");
      const checked = optionsOf("volumes.create", options, ["name", "signal", "onSubmit"]);
      return { given: checked, name: text("name", checked.name), volumes: adapter };
    });
    return {
      kind: "volume_create",
      options: given,
      send: ({ markers }, call) => volumes.create({ markers, name }, call),
      known: (record, { ownership }) => {
        connection.remember("volume", record.id, ownership);
        return { volume: connection.volumeReference(record.id, ownership) };
      },
      finish: async (record, _call, { ownership }) =>
        new VolumeHandle(connection, connection.volumeReference(record.id, ownership)),
    };
  }
}

/**
 * A volume. Mounted by giving `at()` to a new sandbox.
 *
 * ```js
 * const volume = await client.volumes.create({ name: "cache" });
 * const box = await client.sandboxes.create({ mounts: [volume.at("/cache")] });
 * ```
 */
export class VolumeHandle {
  /** Versioned JSON to save and to reopen with `client.volumes.get()`. */
  readonly reference: VolumeReference;
  readonly #connection: Connection;

  static {
    inspectsAs(VolumeHandle, ({ reference }) => reference);
  }

  /** @internal */
  constructor(connection: Connection, reference: VolumeReference) {
    this.#connection = connection;
    this.reference = reference;
  }

  /** Asks the provider how the volume is. */
  inspect(options?: CallOptions): Promise<VolumeInfo> {
    return this.#connection.read("volume_inspect", options, [], async (_, call) => {
      const volumes = adapterVolumes(this.#connection, "volume_inspect", "volumes.get");
      const record = await volumes.inspect({ volumeId: this.reference.id }, call);
      return volumeInfo(record, this.reference);
    });
  }

  /**
   * Says where to mount the volume, for the `mounts` of a create or restore.
   * Attaches nothing and asks no provider.
   */
  at(
    path: string,
    options?: { readonly subpath?: string | undefined; readonly readOnly?: boolean | undefined },
  ): MountDescriptor {
    return this.#connection.checked("volume_at", () =>
      mountDescriptor(this.reference, path, options),
    );
  }

  /** Deletes the volume with its data. One that is gone already is a success. */
  async delete(options?: MutationOptions): Promise<DeleteResult> {
    return await perform(this.#connection, this.#delete(options));
  }

  /** Like {@link delete}, without waiting for the provider. */
  async submitDelete(options?: MutationOptions): Promise<Operation<DeleteResult>> {
    return await submit(this.#connection, this.#delete(options));
  }

  #delete(options: unknown): Mutation<{ alreadyGone: boolean }, DeleteResult> {
    const connection = this.#connection;
    const { given, volumes } = connection.checked("volume_delete", () => ({
      volumes: adapterVolumes(connection, "volume_delete", "volumes.delete"),
      given: optionsOf("delete", options, ["signal", "onSubmit"]),
    }));
    const volumeId = this.reference.id;
    return {
      kind: "volume_delete",
      target: this.reference,
      options: given,
      send: (_evidence, call) => volumes.delete({ volumeId }, call),
      finish: async ({ alreadyGone }) => {
        connection.forget("volume", volumeId);
        return { state: "deleted", alreadyGone };
      },
    };
  }
}

/** The adapter's volumes, which its capabilities must have announced. */
export function adapterVolumes(
  connection: Connection,
  operation: OperationName,
  feature: Feature,
): AdapterVolumes {
  connection.require(operation, feature);
  const { volumes } = connection.adapter;
  if (volumes !== undefined) return volumes;
  throw new BeachsideError("The adapter declares volumes and has none.", { code: "INTERNAL" });
}

/** The reference of a volume that the provider reports; see `foundSandbox`. */
export function foundVolume(
  connection: Connection,
  { id, markers }: VolumeRecord,
  saved?: VolumeReference,
): VolumeReference {
  return connection.volumeReference(
    id,
    connection.ownership("volume", id, markers, saved?.ownership),
  );
}

export function volumeInfo(record: VolumeRecord, reference: VolumeReference): VolumeInfo {
  return {
    reference,
    state: record.state,
    providerState: record.providerState,
    name: record.name,
    createdAt: isoTime(record.createdAtMs),
    ownership: reference.ownership,
  };
}
