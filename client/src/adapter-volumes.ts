/**
 * The part of the adapter interface for providers with volumes. An adapter
 * without volumes leaves it out and says so in `capabilities()`.
 */

import type {
  Call,
  EndRecord,
  FindRequest,
  FindResult,
  Markers,
  Page,
  PageRequest,
} from "./adapter.js";

/** A volume as the provider reports it. */
export interface VolumeRecord {
  /** The provider's id. */
  readonly id: string;
  /** As it was chosen. */
  readonly name: string;
  /** Only a `ready` one can be mounted; `unknown` is a state that this version does not know. */
  readonly state: "creating" | "ready" | "failed" | "deleted" | "unknown";
  /** The provider's own word for the state. */
  readonly providerState: string;
  /** Milliseconds since the epoch; `null` where the provider does not say. */
  readonly createdAtMs: number | null;
  /** Markers in the provider's metadata; `null` where there are none. */
  readonly markers: Markers | null;
}

type OfVolume = { readonly volumeId: string };

/** Volumes of one connection. */
export interface AdapterVolumes {
  /** Submits, once, and resolves with the provider's first answer; the volume may not be ready yet. */
  create(
    request: { readonly markers: Markers; readonly name: string },
    call?: Call,
  ): Promise<VolumeRecord>;
  /** Rejects with `NOT_FOUND` where the provider no longer knows it. */
  inspect(request: OfVolume, call?: Call): Promise<VolumeRecord>;
  /** One page, in the order of the provider. */
  list(request: PageRequest, call?: Call): Promise<Page<VolumeRecord>>;
  /** Submits, once. `alreadyGone`: there was nothing to delete. */
  delete(request: OfVolume, call?: Call): Promise<EndRecord>;
  /** Reads only; a bounded number of pages. */
  find(request: FindRequest, call?: Call): Promise<FindResult<VolumeRecord>>;
}
