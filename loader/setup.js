"use strict";

/**
 * What a person must know to fill in the credentials and settings, for tools
 * that ask. The rules are the addon's; `index.d.ts` documents each setting.
 */

// Runloop's own pages. That these two are the right ones is inferred: no
// machine-readable source names them.
const DASHBOARD = "https://platform.runloop.ai";
const DOCUMENTATION = "https://docs.runloop.ai";

/** @import { AdapterSetup, SetupEntry } from "../client/dist/adapter.js" */

/**
 * @param {string} description
 * @returns {SetupEntry}
 */
function optional(description) {
  return Object.freeze({ description, link: DOCUMENTATION, required: false });
}

/** @type {AdapterSetup} */
const setup = Object.freeze({
  credentials: Object.freeze({
    apiKey: Object.freeze({
      environmentVariable: "RUNLOOP_API_KEY",
      description: "API key of the account, made in the Runloop dashboard.",
      link: DASHBOARD,
      required: true,
    }),
    baseUrl: Object.freeze({
      environmentVariable: "RUNLOOP_BASE_URL",
      description: "Address of the API, where it is not the public one.",
      link: DOCUMENTATION,
      required: false,
    }),
    tunnelDomain: optional("Domain of preview addresses, where it is not the API's own."),
  }),
  config: Object.freeze({
    network: optional('What sandboxes may reach: "blocked" (the default) or "internet".'),
    image: optional("Blueprint that sandboxes start from, by name or id."),
    resources: optional("Least vCPUs and memory of a sandbox: { vcpus, memoryMiB }."),
    lifecycle: optional("When a sandbox ends: { lifetimeSeconds }, or sleeps: { idleSeconds }."),
    preview: optional('Who may open previews: { access: "protected" } (the default) or "public".'),
    snapshots: optional('What snapshots keep: { preserve: "filesystem" }, the only one there is.'),
    timeouts: optional("How long calls wait, in seconds, by kind of call."),
  }),
});

module.exports = { setup };
