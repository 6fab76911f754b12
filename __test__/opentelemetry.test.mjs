/** The bridge to OpenTelemetry in examples/, with the real SDK and an exporter in memory. */

import assert from "node:assert/strict";
import test from "node:test";
import { context, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { instrument } from "../examples/opentelemetry.mjs";
import { runloopClient } from "./support/runloop.mjs";

test("operations become spans, their requests spans below them, and failures are marked", async (t) => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  t.after(() => provider.shutdown());
  const { client } = await runloopClient(t, { config: { network: "internet" } });
  t.after(instrument(provider.getTracer("test")));

  const box = await client.sandboxes.create();
  await box.exec("exit 0");
  await box.readFile("/no/such/file").catch(() => {});
  await box.inspect();
  await box.exec("true", { cwd: "/no/such/directory" }).catch(() => {});
  await box.destroy();
  await new Promise((resolve) => setTimeout(resolve, 20));

  const spans = exporter.getFinishedSpans();
  const named = (name) => spans.filter((span) => span.name === name);
  const parentOf = (span) => span.parentSpanContext?.spanId;
  const [create] = named("sandbox_create");
  const [post] = named("POST /v1/devboxes");
  assert.equal(parentOf(post), create.spanContext().spanId);
  assert.equal(post.attributes["http.response.status_code"], 200);
  assert.equal(create.attributes["beachside.provider"], "runloop");
  assert.equal(create.status.code, SpanStatusCode.UNSET);

  const [good, bad] = named("exec");
  assert.equal(good.attributes["beachside.sandbox_id"], box.reference.id);
  assert.equal(good.status.code, SpanStatusCode.UNSET);
  assert.equal(bad.status.code, SpanStatusCode.ERROR);
  assert.equal(bad.attributes["error.type"], "NOT_FOUND");
  const executes = named("POST /v1/devboxes/{id}/execute");
  assert.ok(executes.some((span) => parentOf(span) === good.spanContext().spanId));

  const reads = named("GET /v1/devboxes/{id}");
  assert.ok(reads.some((span) => parentOf(span) === undefined));
  assert.equal(named("sandbox_destroy").length, 1);
  for (const span of spans) {
    assert.ok(span.ended);
    assert.ok(span.duration[0] >= 0 && span.duration[0] < 60);
  }
  assert.equal(trace.getSpan(context.active()), undefined);
});
