"use strict";

/**
 * `runloopAdapter`, and `runloop()`, which binds credentials and settings to it.
 *
 * What only a connection needs is loaded with the first one, so that an import is cheap.
 */

const { invalid, reading, run } = require("./calls.js");
const { native } = require("./native.js");
const { setup } = require("./setup.js");
const { json } = require("./values.js");

/** @import { Adapter, AdapterConnection, ConnectInput } from "../client/dist/adapter.js" */

/** @satisfies {Adapter} */
const runloopAdapter = Object.freeze({
  provider: "runloop",
  contract: /** @type {const} */ (1),
  setup,

  /** @param {ConnectInput} input */
  async connect(input) {
    return await connect(
      reading(() => texts(input.credentials, input.config)),
      input,
    );
  },
});

/**
 * @param {Record<string, unknown>} options
 * @returns {Adapter}
 */
function runloop(options) {
  if (typeof options !== "object" || options === null) {
    throw invalid("runloop() takes an object with apiKey and, beside it, settings.");
  }
  // As text, in a closure: a copy that later changes of the options do not
  // reach, and that no inspection of the adapter shows.
  const bound = reading(() => {
    const { apiKey, baseUrl, tunnelDomain, ...config } = options;
    return texts({ apiKey, baseUrl, tunnelDomain }, config);
  });
  return Object.freeze({
    ...runloopAdapter,
    bound: true,
    /** @param {ConnectInput} input */
    async connect(input) {
      return await connect(bound, input);
    },
  });
}

/**
 * @param {unknown} credentials
 * @param {unknown} config
 */
function texts(credentials, config) {
  return {
    credentials: json("credentials", credentials ?? null),
    config: json("config", config ?? null),
  };
}

/**
 * @param {{ credentials: string, config: string }} settings
 * @param {ConnectInput} input
 */
function connect({ credentials, config }, input) {
  const { Connection } = require("./connection.js");
  const { observed } = require("./observer.js");
  /** @type {ReturnType<typeof observed> | undefined} */
  let observer;
  return run(
    input,
    (cancellation) => {
      observer = observed(input.observer);
      const baseUrl = process.env["RUNLOOP_BASE_URL"];
      return native().connect(credentials, config, baseUrl, cancellation, observer.told);
    },
    /** @returns {AdapterConnection} */
    (connection) => /** @type {any} */ (new Connection(connection, observer?.end)),
  ).catch((error) => {
    observer?.end();
    throw error;
  });
}

module.exports = { runloop, runloopAdapter };
