/**
 * Waiting until something listens on a port, asked inside the sandbox.
 *
 * One command loops in the sandbox; the port need not be reachable from
 * outside. It needs nothing but a POSIX shell at `/bin/sh`: the kernel's table of sockets is
 * read with the shell's own `read`. Where there is no such table it tries to
 * connect, with bash or nc.
 */

import type { Call } from "./adapter.js";
import { number, optional } from "./arguments.js";
import { type Connection, cancelled } from "./connection.js";
import { BeachsideError, isBeachsideError } from "./errors.js";
import type { CallOptions } from "./operations.js";
import type { SandboxReference } from "./references.js";
import { untilAborted } from "./signals.js";
import { secondsOf, tooLate } from "./waits.js";

const OPERATION = "port_wait";
const DEFAULT_TIMEOUT_SECONDS = 60;
/** Below the longest command, so that the loop ends by itself. */
const MAX_TIMEOUT_SECONDS = 3500;
const DEFAULT_INTERVAL_SECONDS = 0.25;
/** What the command may take beyond its loop before it is killed. */
const SLACK_SECONDS = 60;

/** Options of `box.waitForPort()`. */
export interface WaitForPortOptions extends CallOptions {
  /** More than 0, at most 3,500; 60 when omitted. */
  readonly timeoutSeconds?: number | undefined;
  /** Pause between two looks inside the sandbox, 0.05 to 60; 0.25 when omitted. */
  readonly intervalSeconds?: number | undefined;
}

/** What {@link SandboxHandle.waitForPort} found. */
export interface ListeningPort {
  /** The port that was asked for. */
  readonly port: number;
  /**
   * The addresses that are listened on: `any`, `loopback` (only connections
   * from inside the sandbox), `other` (one address), or `unknown`, where the
   * sandbox could only be asked by connecting to it.
   */
  readonly address: "any" | "loopback" | "other" | "unknown";
}

/** How the script ends. Other codes are failures of the shell. */
const FOUND = 0;
const NOT_YET = 10;
const NO_WAY_TO_LOOK = 11;
const NO_WAY_TO_PAUSE = 12;

/**
 * Arguments: port in hexadecimal, port, seconds to go on for, seconds between two looks.
 *
 * `/proc/net/tcp` gives each socket a line: number, local address:port, remote
 * address:port, state; all hexadecimal, the address in the order of the
 * machine's bytes. State 0A is LISTEN. Time is read from `/proc/uptime`, else
 * counted in pauses.
 */
const SCRIPT = `
hex=$1 port=$2 limit=$3 pause=$4

look() {
  found= table=
  for file in /proc/net/tcp /proc/net/tcp6; do
    [ -r "$file" ] || continue
    table=1
    while read -r _ local _ state _; do
      case $state.$local in 0A.*:"$hex") ;; *) continue ;; esac
      case $local in
        00000000:*|00000000000000000000000000000000:*) found=any; return 0 ;;
        ??????7F:*|7F??????:*|*FFFF0000??????7F:*|*0000FFFF7F??????:*)
          [ -n "$found" ] || found=loopback ;;
        00000000000000000000000001000000:*|00000000000000000000000000000001:*)
          [ -n "$found" ] || found=loopback ;;
        *) found=other ;;
      esac
    done <"$file"
  done
  [ -z "$found" ] || return 0
  [ -z "$table" ] || return 1
  found=unknown
  if command -v bash >/dev/null 2>&1; then
    bash --norc -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"' bash "$port" 2>/dev/null
  elif command -v nc >/dev/null 2>&1; then
    nc -z 127.0.0.1 "$port" >/dev/null 2>&1
  else
    exit ${NO_WAY_TO_LOOK}
  fi
}

clock() {
  now=
  { read -r now _ </proc/uptime; } 2>/dev/null
  now=\${now%%.*}
}

clock
started=$now pauses=0
until look; do
  clock
  if [ -n "$started" ] && [ -n "$now" ]; then
    [ $((now - started)) -lt "$limit" ] || exit ${NOT_YET}
  else
    [ "$pauses" -lt $((limit * 4)) ] || exit ${NOT_YET}
  fi
  sleep "$pause" 2>/dev/null || sleep 1 2>/dev/null || exit ${NO_WAY_TO_PAUSE}
  pauses=$((pauses + 1))
done
echo "$found"
`;

export function waitForPort(
  connection: Connection,
  sandbox: SandboxReference,
  port: unknown,
  options: WaitForPortOptions | undefined,
): Promise<ListeningPort> {
  const keys = ["timeoutSeconds", "intervalSeconds"] as const;
  return connection.read(OPERATION, options, keys, async (given, call) => {
    const checked = number("port", port, { min: 1, max: 65535 });
    const { seconds = DEFAULT_TIMEOUT_SECONDS } = optional(
      "seconds",
      given.timeoutSeconds,
      (value) => secondsOf("timeoutSeconds", value, MAX_TIMEOUT_SECONDS),
    );
    const { interval = DEFAULT_INTERVAL_SECONDS } = optional(
      "interval",
      given.intervalSeconds,
      (value) => number("intervalSeconds", value, { min: 0.05, max: 60, integer: false }),
    );
    connection.require(OPERATION, "exec.run");
    const until = performance.now() + seconds * 1000;
    for (;;) {
      const left = Math.max(0, until - performance.now()) / 1000;
      const address = await look(connection, sandbox, { port: checked, left, interval }, call);
      if (address !== undefined) return { port: checked, address };
      if (performance.now() >= until) {
        throw tooLate(seconds, `Nothing listened on port ${checked} of the sandbox`);
      }
      await pause(Math.min(interval * 1000, until - performance.now()), call.signal);
    }
  });
}

/** One command, which looks until its time is over; `undefined` where it found nothing. */
async function look(
  connection: Connection,
  sandbox: SandboxReference,
  { port, left, interval }: { port: number; left: number; interval: number },
  call: Call,
): Promise<ListeningPort["address"] | undefined> {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const limit = String(Math.ceil(left));
  const pauseSeconds = String(Math.min(interval, Math.max(left, 0.05)));
  const request = {
    sandboxId: sandbox.id,
    command: ["/bin/sh", "-c", SCRIPT, "sh", hex, String(port), limit, pauseSeconds],
    timeoutSeconds: Math.ceil(left) + SLACK_SECONDS,
    maxOutputBytes: 4096,
  };
  const record = await asked(connection, connection.adapter.exec(request, call), call);
  const said = new TextDecoder().decode(record.stdout).trim();
  if (record.exitCode === FOUND && isAddress(said)) return said;
  // Without a way to pause the sandbox was looked at once.
  if (record.exitCode === NOT_YET || record.exitCode === NO_WAY_TO_PAUSE) return undefined;
  throw new BeachsideError(
    record.exitCode === NO_WAY_TO_LOOK
      ? "The sandbox has no /proc/net/tcp, no bash and no nc, so its ports cannot be looked at."
      : `Looking at the ports of the sandbox failed with exit code ${record.exitCode}.`,
    { code: "REJECTED", reason: "port_probe", resource: { kind: "sandbox", id: sandbox.id } },
  );
}

/** Looking changes nothing: what became of the command does not matter to the caller. */
async function asked<T>(connection: Connection, command: Promise<T>, call: Call): Promise<T> {
  try {
    return await command;
  } catch (error) {
    if (!isBeachsideError(error)) throw error;
    if (error.code === "CANCELLED" && call.signal !== undefined) {
      throw cancelled(OPERATION, call.signal);
    }
    connection.refuseClosed();
    const { message, cause, reason, status, requestId, retryAfterSeconds, attempts, resource } =
      error;
    const code = error.code === "OUTCOME_UNKNOWN" ? "UNAVAILABLE" : error.code;
    throw new BeachsideError(message, {
      code,
      ...(cause === undefined ? {} : { cause }),
      ...{ reason, status, requestId, retryAfterSeconds, attempts, resource },
    });
  }
}

function isAddress(value: string): value is ListeningPort["address"] {
  return ["any", "loopback", "other", "unknown"].includes(value);
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  try {
    await untilAborted(over, signal, (at) => cancelled(OPERATION, at));
  } finally {
    clearTimeout(timer);
  }
}
