/**
 * The Beachside client: what is the same for every provider.
 */

export type * from "./adapter.js";
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
  ErrorCode,
  ErrorDetails,
  ErrorResource,
  UnmetRequirement,
  UnsupportedDetails,
} from "./errors.js";
export { BeachsideError, isBeachsideError, UnsupportedFeatureError } from "./errors.js";
export type * from "./outcome.js";
export { Preserve } from "./preserve.js";
export type * from "./references.js";
