"use strict";

/**
 * The adapter interface over the addon's connection. A method hands its
 * request over and says how the answer is read; nothing is decided here.
 */

const { run } = require("./calls.js");
const { told } = require("./listeners.js");
const { Process } = require("./process.js");
const { bytes, json } = require("./values.js");

/** @import * as Adapter from "../client/dist/adapter.js" */
/** @import { Cancellation, Connection as Native } from "../binding.js" */

/**
 * Verbs whose request and record cross as JSON text.
 *
 * @typedef {"createSandbox" | "waitForSandbox" | "inspectSandbox" | "listSandboxes"
 *   | "suspendSandbox" | "resumeSandbox" | "destroySandbox" | "preview"
 *   | "findSandboxes" | "captureSnapshot" | "waitForSnapshot" | "inspectSnapshot"
 *   | "listSnapshots" | "deleteSnapshot" | "findSnapshots"} JsonVerb
 */

class Connection {
  #native;
  #end;
  #capabilities;

  /**
   * @param {Native} native
   * @param {() => void} [end] called when it is closed
   */
  constructor(native, end = () => {}) {
    this.#native = native;
    this.#end = end;
    this.scope = Object.freeze({ account: native.account });
    this.#capabilities = frozen(JSON.parse(native.capabilities));
  }

  capabilities() {
    return this.#capabilities;
  }

  /** @type {Adapter.AdapterConnection["createSandbox"]} */
  createSandbox(request, call) {
    return this.#json("createSandbox", request, call);
  }

  /** @type {Adapter.AdapterConnection["waitForSandbox"]} */
  waitForSandbox(request, call) {
    return this.#json("waitForSandbox", request, call);
  }

  /** @type {Adapter.AdapterConnection["inspectSandbox"]} */
  inspectSandbox(request, call) {
    return this.#json("inspectSandbox", request, call);
  }

  /** @type {Adapter.AdapterConnection["listSandboxes"]} */
  listSandboxes(request, call) {
    return this.#json("listSandboxes", request, call);
  }

  /** @type {Adapter.AdapterConnection["suspendSandbox"]} */
  suspendSandbox(request, call) {
    return this.#json("suspendSandbox", request, call);
  }

  /** @type {Adapter.AdapterConnection["resumeSandbox"]} */
  resumeSandbox(request, call) {
    return this.#json("resumeSandbox", request, call);
  }

  /** @type {Adapter.AdapterConnection["destroySandbox"]} */
  destroySandbox(request, call) {
    return this.#json("destroySandbox", request, call);
  }

  /** @type {Adapter.AdapterConnection["exec"]} */
  exec(request, call) {
    const start = (/** @type {Cancellation | undefined} */ cancellation) => {
      const { sandboxId, command, stdin } = request;
      const input = stdin === undefined ? undefined : bytes("stdin", stdin);
      const options = hasOptions(request) ? request : undefined;
      return this.#native.exec(sandboxId, command, options, input, cancellation);
    };
    return run(call, start, execRecord);
  }

  /** @type {Adapter.AdapterConnection["startProcess"]} */
  startProcess(request, call) {
    const start = (/** @type {Cancellation | undefined} */ cancellation) =>
      this.#native.startProcess(json("startProcess", request), cancellation);
    return run(call, start, live);
  }

  /** @type {Adapter.AdapterConnection["openProcess"]} */
  openProcess(request, call) {
    const start = (/** @type {Cancellation | undefined} */ cancellation) =>
      this.#native.openProcess(json("openProcess", request), cancellation);
    return run(call, start, live);
  }

  /** @type {Adapter.AdapterConnection["readFile"]} */
  readFile(request, call) {
    return told(call?.onProgress, (listener) =>
      run(call, (cancellation) => this.#native.readFile(request, cancellation, listener), asItIs),
    );
  }

  /** @type {Adapter.AdapterConnection["writeFile"]} */
  writeFile(request, call) {
    return told(call?.onProgress, (listener) => {
      const start = (/** @type {Cancellation | undefined} */ cancellation) =>
        this.#native.writeFile(request, bytes("content", request.content), cancellation, listener);
      return run(call, start, asItIs);
    });
  }

  /** @type {Adapter.AdapterConnection["preview"]} */
  preview(request, call) {
    return this.#json("preview", request, call);
  }

  /** @type {Adapter.AdapterConnection["captureSnapshot"]} */
  captureSnapshot(request, call) {
    return this.#json("captureSnapshot", request, call);
  }

  /** @type {Adapter.AdapterConnection["waitForSnapshot"]} */
  waitForSnapshot(request, call) {
    return this.#json("waitForSnapshot", request, call);
  }

  /** @type {Adapter.AdapterConnection["inspectSnapshot"]} */
  inspectSnapshot(request, call) {
    return this.#json("inspectSnapshot", request, call);
  }

  /** @type {Adapter.AdapterConnection["listSnapshots"]} */
  listSnapshots(request, call) {
    return this.#json("listSnapshots", request, call);
  }

  /** @type {Adapter.AdapterConnection["deleteSnapshot"]} */
  deleteSnapshot(request, call) {
    return this.#json("deleteSnapshot", request, call);
  }

  /** @type {Adapter.AdapterConnection["findSandboxes"]} */
  findSandboxes(request, call) {
    return this.#json("findSandboxes", request, call);
  }

  /** @type {Adapter.AdapterConnection["findSnapshots"]} */
  findSnapshots(request, call) {
    return this.#json("findSnapshots", request, call);
  }

  async close() {
    this.#native.close();
    this.#end();
  }

  /**
   * @param {JsonVerb} verb
   * @param {object} request
   * @param {Adapter.Call | undefined} call
   */
  #json(verb, request, call) {
    const native = this.#native;
    return run(call, (cancellation) => native[verb](json(verb, request), cancellation), JSON.parse);
  }
}

/** @param {Adapter.ExecRequest} request */
function hasOptions({ cwd, env, timeoutSeconds, maxOutputBytes }) {
  return (
    cwd !== undefined ||
    env !== undefined ||
    timeoutSeconds !== undefined ||
    maxOutputBytes !== undefined
  );
}

/**
 * @param {Awaited<ReturnType<Native["exec"]>>} fields
 * @returns {Adapter.ExecRecord}
 */
function execRecord(fields) {
  return {
    exitCode: fields[0],
    stdout: fields[1] ?? new Uint8Array(0),
    stderr: fields[2] ?? new Uint8Array(0),
    stdoutBytes: fields[3],
    stderrBytes: fields[4],
    stdoutTruncated: fields[5],
    stderrTruncated: fields[6],
    durationMs: fields[7],
  };
}

/** @param {import("../binding.js").Process} native */
function live(native) {
  return new Process(native);
}

/**
 * @template T
 * @param {T} value
 */
function asItIs(value) {
  return value;
}

/**
 * The same tree, frozen to its leaves: every caller sees this one.
 *
 * @template T
 * @param {T} tree
 * @returns {T}
 */
function frozen(tree) {
  if (typeof tree !== "object" || tree === null) return tree;
  for (const each of Object.values(tree)) frozen(each);
  return Object.freeze(tree);
}

module.exports = { Connection };
