/**
 * Spans of OpenTelemetry for what @beachside/runloop does: one for each
 * operation, below the span that is active in your code, and one for each
 * HTTP request, below its operation.
 *
 * Copy this file, set up the OpenTelemetry SDK as you always do, and call
 * `instrument()` once. It needs `@opentelemetry/api` only.
 */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";

/** Starts making spans; returns a function that stops it. */
export function instrument(tracer = trace.getTracer("@beachside/runloop")) {
  /** Open spans: of operations by their id, of requests by their number. */
  const operations = new Map();
  const requests = new Map();

  const listeners = {
    "beachside.operation.submit"(record) {
      const { time, provider, operation, operationId, targetKind, targetId } = record;
      const attributes = { "beachside.provider": provider, "beachside.operation_id": operationId };
      if (targetKind !== undefined) attributes[`beachside.${targetKind}_id`] = targetId;
      // Told while your code calls, so that its active span is the parent.
      const span = tracer.startSpan(operation, { startTime: time, attributes });
      operations.set(operationId, span);
    },

    "beachside.operation.settle"({ time, operationId, code }) {
      const span = operations.get(operationId);
      if (span === undefined) return;
      operations.delete(operationId);
      if (code !== undefined) fail(span, code);
      span.end(time);
    },

    "beachside.request.start"(record) {
      const { time, request, operation, operationId, method, route, path, attempt } = record;
      const parent = operations.get(operationId);
      const span = tracer.startSpan(
        `${method} ${route}`,
        {
          kind: SpanKind.CLIENT,
          startTime: time,
          root: parent === undefined,
          attributes: {
            "http.request.method": method,
            "url.template": route,
            "url.path": path,
            "beachside.operation": operation,
            ...(attempt === 1 ? {} : { "http.request.resend_count": attempt - 1 }),
          },
        },
        parent === undefined ? undefined : trace.setSpan(context.active(), parent),
      );
      requests.set(request, span);
    },

    "beachside.request.end"({ time, request, status, failure, requestId, receivedBytes }) {
      const span = requests.get(request);
      if (span === undefined) return;
      requests.delete(request);
      span.setAttribute("http.response.body.size", receivedBytes);
      if (requestId !== undefined) span.setAttribute("beachside.request_id", requestId);
      if (status !== undefined) span.setAttribute("http.response.status_code", status);
      // A read that nobody waits for any more has not failed.
      if (failure !== undefined && failure !== "dropped") fail(span, failure);
      else if (status >= 400) fail(span, String(status));
      span.end(time);
    },

    "beachside.retry"({ time, operationId, reason, delayMs }) {
      operations.get(operationId)?.addEvent("retry", { reason, delayMs }, time);
    },
  };

  for (const [name, listener] of Object.entries(listeners)) subscribe(name, listener);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) unsubscribe(name, listener);
    for (const span of [...requests.values(), ...operations.values()]) span.end();
  };
}

function fail(span, type) {
  span.setAttribute("error.type", type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
