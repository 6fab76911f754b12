// Named exports of the CommonJS build, so that `import` and `require` share one
// instance of every class. A test holds the list against the build.
import client from "./dist/index.js";

export const {
  Beachside,
  BeachsideError,
  Image,
  isBeachsideError,
  MAX_MOUNTS_JSON_BYTES,
  Preserve,
  UnsupportedFeatureError,
  validateOperationReference,
  validateResourceReference,
} = client;
