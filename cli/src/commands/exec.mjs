/** `exec`, `logs`, `kill`: running commands, and what they write. */

import { Failure } from "../failure.mjs";
import { findProcess, findSandbox } from "../find.mjs";
import { INTERRUPTED, withSession } from "../session.mjs";

/** @import { ProcessHandle } from "@beachside/runloop/client" */
/** @import { GlobalOptions, Session } from "../session.mjs" */

/** Without `-f`, a process that is silent for so long has shown what it has. */
const QUIET_MS = 1000;

/**
 * @typedef {object} ExecFlags
 * @property {boolean} [shell]
 * @property {boolean} [stdin]
 * @property {boolean} [follow]
 * @property {boolean} [detach]
 * @property {string} [cwd]
 * @property {Record<string, string>} [env]
 * @property {number} [timeout]
 */

/**
 * @param {string} sandbox
 * @param {string[]} words
 * @param {ExecFlags & GlobalOptions} options
 */
export function exec(sandbox, words, options) {
  if (options.shell && words.length !== 1) {
    throw new Failure("--shell takes one word: the whole line, quoted.", 2);
  }
  const command = options.shell ? /** @type {string} */ (words[0]) : words;
  const place = {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: options.env }),
  };
  return withSession(options, {}, async (session) => {
    const { client, store, screen, signal } = session;
    const box = await findSandbox(client, store, sandbox, signal);
    if (options.follow || options.detach) {
      if (options.stdin)
        throw new Failure("-i needs the command's end; it cannot go with -f or -d.", 2);
      const output = { mode: /** @type {const} */ ("stream") };
      const started = await box.processes.start({ command, ...place, output, signal });
      await store.save(started.reference);
      if (options.detach) {
        screen.result(started.reference, started.reference.id);
        await started.detach();
        return 0;
      }
      return await followed(started, session, async () => {
        await started.terminate();
        screen.note("The command was killed.");
        screen.note(`The sandbox goes on: beachside destroy ${box.reference.id}`);
      });
    }
    const result = await box.exec(command, {
      ...place,
      ...(options.stdin ? { stdin: await allInput() } : {}),
      ...(options.timeout === undefined ? {} : { timeoutSeconds: options.timeout }),
      signal,
    });
    if (options.json) {
      const { exitCode, stdoutTruncated, stderrTruncated, stdoutBytes, stderrBytes } = result;
      const base64 = (/** @type {Uint8Array} */ bytes) => Buffer.from(bytes).toString("base64");
      screen.result(
        {
          exitCode,
          stdout: base64(result.stdout),
          stderr: base64(result.stderr),
          encoding: "base64",
          stdoutTruncated,
          stderrTruncated,
          stdoutBytes,
          stderrBytes,
        },
        "",
      );
    } else {
      await write(process.stdout, result.stdout);
      await write(process.stderr, result.stderr);
      const { stdoutTruncated, stderrTruncated } = result;
      if (stdoutTruncated || stderrTruncated) screen.note("The output was cut at 1 MiB.");
    }
    return result.exitCode;
  });
}

/**
 * @param {string} process
 * @param {{ follow?: boolean } & GlobalOptions} options
 */
export function logs(process, options) {
  return withSession(options, {}, async (session) => {
    const { client, store, screen, signal } = session;
    const opened = await findProcess(client, store, process, signal);
    if (options.follow) {
      return await followed(opened, session, async () => {
        screen.note(`The process goes on: beachside kill ${opened.reference.id}`);
      });
    }
    const { state } = await opened.status({ signal });
    await shown(opened, signal, state === "exited" ? undefined : QUIET_MS);
    if (state !== "exited") screen.note("The process still runs; -f follows it.");
    return 0;
  });
}

/**
 * @param {string} process
 * @param {GlobalOptions} options
 */
export function kill(process, options) {
  return withSession(options, {}, async ({ client, store, screen, signal }) => {
    const opened = await findProcess(client, store, process, signal);
    const exit = await opened.terminate({ signal });
    await store.forget(opened.reference);
    screen.result(exit, `ended with ${exit.exitCode}`);
  });
}

/**
 * Shows a process to its end and gives its exit code.
 *
 * @param {ProcessHandle} started
 * @param {Session} session
 * @param {() => Promise<void>} interrupted what a Ctrl-C does about the process
 */
async function followed(started, { screen, signal }, interrupted) {
  try {
    await shown(started, signal);
    const { exitCode, output } = await started.wait({ signal });
    if (output === "incomplete") screen.note("Some of the output is missing.");
    return exitCode;
  } catch (error) {
    if (!signal.aborted) throw error;
    await interrupted();
    return INTERRUPTED;
  }
}

/**
 * Copies the output until its end, an abort, or `quietMs` of silence.
 *
 * @param {ProcessHandle} process
 * @param {AbortSignal} signal
 * @param {number} [quietMs]
 */
async function shown(process, signal, quietMs) {
  const pieces = process.output[Symbol.asyncIterator]();
  const leave = () => void pieces.return?.();
  signal.addEventListener("abort", leave, { once: true });
  /** @type {NodeJS.Timeout | undefined} */
  let quiet;
  try {
    for (;;) {
      if (quietMs !== undefined) quiet = setTimeout(leave, quietMs);
      const { done, value } = await pieces.next();
      clearTimeout(quiet);
      if (done) break;
      await write(
        value.stream === "stdout" ? globalThis.process.stdout : globalThis.process.stderr,
        value.text,
      );
    }
  } finally {
    clearTimeout(quiet);
    signal.removeEventListener("abort", leave);
    leave();
  }
  signal.throwIfAborted();
}

async function allInput() {
  /** @type {Buffer[]} */
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * Resolves when it was taken: a slow reader of ours slows the reading.
 *
 * @param {NodeJS.WriteStream} stream
 * @param {Uint8Array | string} data
 * @returns {Promise<void>}
 */
function write(stream, data) {
  if (data.length === 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()));
  });
}
