// Runs a list of tests with the official SDK over every transport.
//
// Owns one simulator for each list and transport, the SDK clients on it and the
// check of every answer against the service's schemas. Knows nothing of what
// the tests assert. Start reading at `suite`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { after, before, describe } from "node:test";
import { Runloop, RunloopSDK } from "@runloop/api-client";
import { soak } from "../../support/scale.mjs";
import { startSimulator } from "../../support/simulator.mjs";
import { mismatches } from "../schemas/check.mjs";

/** Any key that starts so is accepted. */
const KEY = "ak_test_0123456789";

const plain = {
  name: "HTTP/1.1 on plain processes",
  args: ["--plain"],
  options: () => ({ http2: false }),
};

const overTls1 = {
  name: "TLS with HTTP/1.1",
  tls: true,
  args: [],
  options: ({ ca }) => ({
    http2: false,
    httpAgent: new Agent({ ca: readFileSync(ca), keepAlive: true }),
  }),
};

const transports = [
  {
    name: "HTTP/1.1",
    args: [],
    options: () => ({ http2: false }),
  },
  {
    name: "TLS with HTTP/2",
    tls: true,
    args: [],
    options: ({ ca }) => ({ http2: { tlsOptions: { ca: readFileSync(ca) } } }),
  },
  ...(soak ? [overTls1, plain] : []),
];

/** Long enough for a machine under load, short enough to see a hang. */
const LIMIT_MS = soak ? 600_000 : 120_000;

/**
 * Describes `body`'s tests once for each transport. `body` is given a context
 * whose fields are there once a test runs: `api` (the raw client), `sdk` (the
 * object-oriented one), `client` (makes both with other options), `simulator`.
 * `only` names the one transport of a client that brings its own.
 */
export function suite(title, body, { settings = {}, concurrency = 4, only } = {}) {
  for (const transport of transports) {
    if (only !== undefined && only !== transport.name) continue;
    describe(`${title} over ${transport.name}`, { concurrency, timeout: LIMIT_MS }, () => {
      const context = new Context(transport);
      before(() => context.start(settings));
      after(() => context.finish());
      body(context);
    });
  }
}

class Context {
  #transport;

  constructor(transport) {
    this.#transport = transport;
  }

  async start(settings) {
    this.simulator = await startSimulator({
      settings: { journal_response_bodies: true, ...settings },
      tls: this.#transport.tls,
      more: this.#transport.args,
    });
    Object.assign(this, this.client());
  }

  /** Both clients; `options` are the SDK's own, such as `maxRetries`. */
  client(options = {}) {
    const all = {
      bearerToken: KEY,
      baseURL: this.simulator.url,
      ...this.#transport.options(this.simulator),
      ...options,
    };
    return { api: new Runloop(all), sdk: new RunloopSDK(all) };
  }

  /** A running Devbox that is shut down after the test `t`. */
  async box(t, params = {}, options = {}) {
    const box = await this.sdk.devbox.create(params, options);
    t.after(() => box.shutdown());
    return box;
  }

  /** What was sent to paths that start so, oldest first. */
  async sent(path, method) {
    const { entries } = await this.simulator.journal({ path, ...(method ? { method } : {}) });
    return entries;
  }

  async finish() {
    if (!this.simulator) return;
    const journal = await this.simulator.journal();
    const ended = await this.simulator.stop();
    const { checked, problems } = mismatches(journal);
    assert.deepEqual(problems, [], "answers that do not fit the service's schemas");
    assert.ok(checked > 0, "the tests sent nothing");
    assert.deepEqual(ended, { code: 0, signal: null }, this.simulator.log);
  }
}

/** Collects a stream's text. */
export async function textOf(stream) {
  let text = "";
  for await (const chunk of stream) text += chunk.output;
  return text;
}

/** A name that no other test uses. */
export function unique(prefix) {
  return `${prefix}-${process.pid}-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
}
