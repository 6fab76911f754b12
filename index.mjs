// The same objects as `require` gives, so that both share one instance of every class.
import runloopPackage from "./index.js";

export const {
  BeachsideError,
  isBeachsideError,
  Preserve,
  runloop,
  runloopAdapter,
  UnsupportedFeatureError,
} = runloopPackage;
