// Named exports of the CommonJS build, as in index.mjs.
import testing from "./dist/testing/index.js";

export const { contractCases } = testing;
