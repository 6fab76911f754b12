/**
 * What is told of a connection. No record holds a key, a header, a body, a
 * command, an environment value, a query of a URL or the content of a file.
 */

import type { ErrorCode } from "./errors.js";
import type { OperationKind } from "./references.js";

/** What all records of one request say. */
export interface RequestFields {
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** Number of the attempt within this process; its start and its end have the same. */
  readonly request: number;
  /** The call that it is made for, for example `exec`. */
  readonly operation: string;
  /** The operation that it is made for, as in its reference; absent for a read. */
  readonly operationId?: string;
  /** HTTP method. */
  readonly method: string;
  /** The path with `{id}` in place of ids: what to group by. */
  readonly route: string;
  /** The path, without its query. */
  readonly path: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** A request is about to be sent. Channel `beachside.request.start`. */
export interface RequestStart extends RequestFields {
  /** Also the end of the channel's name, `beachside.request.start`. */
  readonly type: "request.start";
  /** Size of the body. */
  readonly sentBytes: number;
}

/** A request was answered, failed or was given up. Channel `beachside.request.end`. */
export interface RequestEnd extends RequestFields {
  /** Also the end of the channel's name, `beachside.request.end`. */
  readonly type: "request.end";
  /** HTTP status; absent where no answer came. */
  readonly status?: number;
  /** The provider's id of the request, else the one that was sent. */
  readonly requestId?: string;
  /**
   * What went wrong below HTTP: `connect`, `timeout`, `reset`, `tls`, `proxy`,
   * `too_large`, `unaddressable`, `build`, or `dropped` where nobody waits for it any more.
   */
  readonly failure?: string;
  /** From its start to the last byte of the answer, for a stream to its end. */
  readonly durationMs: number;
  /** Size of the answer's body, decompressed. */
  readonly receivedBytes: number;
}

/** A read failed and is sent again. Channel `beachside.retry`. */
export interface Retry extends RequestFields {
  /** Also the end of the channel's name, `beachside.retry`. */
  readonly type: "retry";
  /** For example `status 503`, or a {@link RequestEnd.failure}. */
  readonly reason: string;
  /** Pause before the next attempt. */
  readonly delayMs: number;
}

/** Live output is read on where its connection ended. Channel `beachside.reconnect`. */
export interface Reconnect {
  /** Also the end of the channel's name, `beachside.reconnect`. */
  readonly type: "reconnect";
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** The call that reads, for example `process_read`. */
  readonly operation: string;
  /** The provider's id of the sandbox. */
  readonly sandboxId: string;
  /** The provider's id of the process. */
  readonly processId: string;
  /** Which stream goes on. */
  readonly stream: "stdout" | "stderr";
  /** Where it goes on, as the provider counts. */
  readonly offset: number;
  /** How the connection before it ended: `closed`, `lost` or `trouble`. */
  readonly reason: string;
}

interface OperationFields {
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** Which mutation. */
  readonly operation: OperationKind;
  /** As in the operation's reference. */
  readonly operationId: string;
  /** What it acts on. */
  readonly targetKind?: string;
  /** The provider's id of it. */
  readonly targetId?: string;
}

/** A mutation is about to be sent; told in the caller's async context. Channel `beachside.operation.submit`. */
export interface OperationSubmit extends OperationFields {
  /** Also the end of the channel's name, `beachside.operation.submit`. */
  readonly type: "operation.submit";
}

/** A mutation, or one wait for it, ended. Channel `beachside.operation.settle`. */
export interface OperationSettle extends OperationFields {
  /** Also the end of the channel's name, `beachside.operation.settle`. */
  readonly type: "operation.settle";
  /** The error's code; absent for a success. */
  readonly code?: ErrorCode;
  /** Request id of the error, where it has one. */
  readonly requestId?: string;
  /** Since it was submitted. */
  readonly durationMs: number;
}

/** Records that were not told, because the program was too busy to take them. Channel `beachside.dropped`. */
export interface Dropped {
  /** Also the end of the channel's name, `beachside.dropped`. */
  readonly type: "dropped";
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** How many. */
  readonly count: number;
}

/** What an adapter, or the client, tells. */
export type TraceEvent =
  | RequestStart
  | RequestEnd
  | Retry
  | Reconnect
  | OperationSubmit
  | OperationSettle
  | Dropped;

/** What listeners get: a frozen object. */
export type TraceRecord = TraceEvent & {
  /** The adapter's provider, for example `runloop`. */
  readonly provider: string;
};
