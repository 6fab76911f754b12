/**
 * One run of a command: the connection, the store of its account, Ctrl-C, and
 * how results are shown.
 */

import { runloop } from "@beachside/runloop";
import { Beachside } from "@beachside/runloop/client";
import { Failure } from "./failure.mjs";
import { Screen } from "./screen.mjs";
import { Store } from "./store.mjs";

/** @import { RunloopConfig } from "@beachside/runloop" */

/** Where `--simulator` looks unless RUNLOOP_BASE_URL says: what `runloop-simulator --port 8090` serves. */
const SIMULATOR = "http://127.0.0.1:8090";

/** Exit code of a program that SIGINT ended, as shells say it. */
export const INTERRUPTED = 130;

/**
 * @typedef {object} GlobalOptions
 * @property {boolean} [json]
 * @property {boolean} [simulator]
 */

/**
 * Connects, runs `body`, closes. The first Ctrl-C aborts `session.signal`, so
 * that the command can say what is left; a second one ends the program.
 *
 * @param {GlobalOptions} options
 * @param {RunloopConfig} config
 * @param {(session: Session) => Promise<number | void>} body resolves to the exit code; 0 when it does not say
 */
export async function withSession(options, config, body) {
  const interruption = new AbortController();
  const interrupt = () => {
    if (interruption.signal.aborted) process.exit(INTERRUPTED);
    interruption.abort(new Error("interrupted"));
  };
  process.on("SIGINT", interrupt);
  const screen = new Screen(options.json === true);
  try {
    const { signal } = interruption;
    const client = await Beachside.connect(runloop({ ...credentials(options), ...config }), {
      signal,
    });
    try {
      const store = new Store(client.scope.account);
      return (await body({ client, store, screen, signal })) ?? 0;
    } finally {
      await client.close();
    }
  } finally {
    screen.stop();
    process.off("SIGINT", interrupt);
  }
}

/**
 * @typedef {object} Session
 * @property {import("@beachside/runloop/client").BeachsideClient} client
 * @property {Store} store
 * @property {Screen} screen
 * @property {AbortSignal} signal
 */

/** @param {GlobalOptions} options */
function credentials({ simulator }) {
  const apiKey = process.env["RUNLOOP_API_KEY"];
  if (simulator) {
    const baseUrl = process.env["RUNLOOP_BASE_URL"] || SIMULATOR;
    return { apiKey: apiKey || "ak_simulator", baseUrl };
  }
  if (!apiKey) {
    throw new Failure(
      "Set RUNLOOP_API_KEY to a key of the Runloop dashboard, or use --simulator to try things locally.",
    );
  }
  return { apiKey };
}
