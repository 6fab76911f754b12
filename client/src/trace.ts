/**
 * Telling what happens on a connection: requests, retries, reconnects, operations.
 *
 * Three listeners, the same records: `node:diagnostics_channel`, the `trace`
 * option of `connect`, and lines on standard error (`BEACHSIDE_LOG=debug`). Where nobody
 * listens no record is made, by the client or by the adapter.
 */

import { type Channel, channel } from "node:diagnostics_channel";
import { guarded } from "./progress.js";
import type { TraceEvent, TraceRecord } from "./trace-records.js";

/** What an adapter tells of its requests to. */
export interface Observer {
  /** Whether anybody listens now. */
  readonly active: boolean;
  /** Calls back when `active` changes. */
  onChange(listener: (active: boolean) => void): void;
  /** Tells. Never throws. */
  publish(event: TraceEvent): void;
}

const TYPES = [
  "request.start",
  "request.end",
  "retry",
  "reconnect",
  "operation.submit",
  "operation.settle",
  "dropped",
] as const satisfies readonly TraceEvent["type"][];

/** Held here: a channel that nobody holds would lose its subscribers. */
const channels = Object.fromEntries(
  TYPES.map((type) => [type, channel(`beachside.${type}`)]),
) as Record<TraceEvent["type"], Channel>;

/** The listeners of one connection. */
export class Tracer implements Observer {
  readonly #sinks: readonly ((record: TraceRecord) => void)[];
  readonly #provider: string;
  #onChange: (active: boolean) => void = () => {};
  #active = false;

  constructor(provider: string, trace: ((record: TraceRecord) => unknown) | undefined) {
    this.#provider = provider;
    this.#sinks = [
      ...(trace === undefined ? [] : [guarded("trace", trace)]),
      ...(process.env["BEACHSIDE_LOG"] === "debug" ? [writeLine] : []),
    ];
  }

  /**
   * Whether anybody listens. Channels do not tell of new subscribers, so each
   * call of a connection asks here, and the adapter hears of a change.
   */
  get active(): boolean {
    const active = this.#sinks.length > 0 || hasSubscribers();
    if (active !== this.#active) {
      this.#active = active;
      this.#onChange(active);
    }
    return active;
  }

  onChange(listener: (active: boolean) => void): void {
    this.#onChange = listener;
    if (this.active) listener(true);
  }

  publish(event: TraceEvent): void {
    if (!this.active) return;
    const record = Object.freeze({ ...event, provider: this.#provider }) as TraceRecord;
    for (const sink of this.#sinks) sink(record);
    // A subscriber that throws is Node's to report; nothing is thrown here.
    channels[record.type]?.publish(record);
  }
}

const allChannels = Object.values(channels);

function hasSubscribers(): boolean {
  // Asked by every call.
  for (let at = 0; at < allChannels.length; at++) {
    if (allChannels[at]?.hasSubscribers === true) return true;
  }
  return false;
}

/** `beachside 2026-01-01T00:00:00.000Z request.end provider=runloop method=GET …`, on one line. */
function writeLine({ type, time, ...fields }: TraceRecord): void {
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${shownValue(value)}`);
  const at = new Date(time).toISOString();
  process.stderr.write(`beachside ${at} ${type} ${shown.join(" ")}\n`);
}

function shownValue(value: unknown): string {
  if (typeof value === "number") return String(Math.round(value * 1000) / 1000);
  // Quoted where it is not one plain word, so that a line stays a line.
  return typeof value === "string" && /^[\w./:{}+-]+$/.test(value) ? value : JSON.stringify(value);
}
