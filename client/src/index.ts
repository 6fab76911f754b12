/**
 * The Beachside client: what is the same for every provider.
 *
 * Start reading at beachside.ts (connect and the client), then
 * operations.ts (how a mutation runs) and adapter.ts (what is below).
 */

export type * from "./adapter.js";
export type * from "./adapter-volumes.js";
export {
  Beachside,
  type BeachsideClient,
  type ConnectionOptions,
  type ConnectOptions,
} from "./beachside.js";
export type {
  Capabilities,
  Capability,
  CaptureBehavior,
  ExecLimits,
  Feature,
  FileLimits,
  MountBehavior,
  RestoreBehavior,
  Supported,
  Unsupported,
} from "./capabilities.js";
export type {
  CaptureRequirements,
  CaptureResult,
  CheckSnapshotOptions,
  SnapshotCheck,
  SnapshotOptions,
} from "./capture.js";
export type { CleanupReport, NotCleaned } from "./cleanup.js";
export type { NewSandboxOptions } from "./create-request.js";
export type {
  ErrorCode,
  ErrorDetails,
  ErrorResource,
  UnmetRequirement,
  UnsupportedDetails,
} from "./errors.js";
export { BeachsideError, isBeachsideError, UnsupportedFeatureError } from "./errors.js";
export type { Command, CommandOptions, ExecOptions } from "./exec.js";
export type { Base64, ExecResult, ExecResultJson } from "./exec-result.js";
export type { ReadFileOptions, SandboxFiles, WriteFileOptions } from "./files.js";
export { Image } from "./image.js";
export type { InventoryItem } from "./inventory.js";
export type { List, ListOptions } from "./lists.js";
export type { MountDescriptor } from "./mounts.js";
export type { CallOptions, MutationOptions, Operation } from "./operations.js";
export type * from "./outcome.js";
export type { OutputStream, TextStream } from "./output.js";
export { Preserve } from "./preserve.js";
export type { Preview } from "./preview.js";
export type { OpenProcessOptions, Processes, ProcessHandle, StartOptions } from "./processes.js";
export type { Progress, ProgressOptions } from "./progress.js";
export type { Continue, Found, Recovery, Searched } from "./recovery.js";
export { validateOperationReference, validateResourceReference } from "./reference-checks.js";
export type * from "./references.js";
export { MAX_MOUNTS_JSON_BYTES } from "./references.js";
export type {
  DestroyOptions,
  DestroyResult,
  PowerResult,
  SandboxHandle,
} from "./sandbox-handle.js";
export type { SandboxInfo, SandboxSummary } from "./sandbox-info.js";
export type { CreateOptions, ListSandboxesOptions, Sandboxes } from "./sandboxes.js";
export type {
  DeleteResult,
  RestoreOptions,
  SnapshotHandle,
  SnapshotInfo,
  SnapshotSummary,
} from "./snapshot-handle.js";
export type { Snapshots } from "./snapshots.js";
export type { Observer } from "./trace.js";
export type * from "./trace-records.js";
export type { CreateVolumeOptions, VolumeHandle, VolumeInfo, Volumes } from "./volumes.js";
export type { OutputMatch, WaitForOutputOptions } from "./wait-for-output.js";
export type { ListeningPort, WaitForPortOptions } from "./wait-for-port.js";
