"use strict";

/**
 * Entry of `@beachside/runloop`. The parts stand in `loader/` (the addon) and
 * `client/` (what is the same for every provider); nothing is done here.
 */

const {
  BeachsideError,
  isBeachsideError,
  UnsupportedFeatureError,
} = require("./client/dist/errors.js");
const { Preserve } = require("./client/dist/preserve.js");
const { runloop, runloopAdapter } = require("./loader/adapter.js");

module.exports = {
  BeachsideError,
  isBeachsideError,
  Preserve,
  runloop,
  runloopAdapter,
  UnsupportedFeatureError,
};
