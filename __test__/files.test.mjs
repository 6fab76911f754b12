import assert from "node:assert/strict";
import test from "node:test";
import util from "node:util";
import { memoryClient, rejection } from "./support/client.mjs";

test("a file is written and read back byte for byte, and as text", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
  await box.writeFile("/a.bin", bytes, { overwrite: true, mode: 0o755 });
  assert.deepEqual(await box.readFile("/a.bin"), bytes);
  assert.equal(world.calls.find((each) => each.method === "writeFile").request.mode, 0o755);
  await box.writeFile("/b.txt", "\ufeffhé", { overwrite: true });
  assert.equal(await box.readTextFile("/b.txt"), "\ufeffhé");
  await assert.rejects(box.readFile("/missing"), {
    code: "NOT_FOUND",
    resource: { kind: "file", id: "/missing" },
    operation: "file_read",
  });
});

test("[R24] a write without overwrite: true rejects as unsupported before anything is sent", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  world.calls.length = 0;
  for (const options of [undefined, {}, { overwrite: false }, { mode: 0o600 }]) {
    const error = await rejection(box.writeFile("/a", "x", options));
    assert.equal(error.name, "UnsupportedFeatureError");
    assert.equal(error.feature, "files.writeNew");
  }
  assert.deepEqual(world.calls, []);
});

test("[E8] wrong arguments of file calls are refused by name and show no content", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  world.calls.length = 0;
  const overwrite = { overwrite: true };
  const wrong = [
    [() => box.writeFile("", "x", overwrite), /path must not be empty/],
    [() => box.writeFile("/a\0b", "x", overwrite), /path must not hold a NUL/],
    [() => box.writeFile("/\udfff", "x", overwrite), /surrogate/],
    [() => box.writeFile("/a", 5, overwrite), /content must be a Uint8Array or a string/],
    [() => box.writeFile("/a", "s3cret\ud800", overwrite), /content must not hold half/],
    [() => box.writeFile("/a", "s3cret", { overwrite: "yes" }), /overwrite must be true or false/],
    [() => box.writeFile("/a", "s3cret", { ...overwrite, mode: 0o10000 }), /mode must be a whole/],
    [() => box.writeFile("/a", "s3cret", { overwrit: true }), /did you mean "overwrite"/],
    [() => box.readFile(7), /path must be a string/],
    [() => box.readFile("/a", { encoding: "utf8" }), /unknown key "encoding"/],
    [() => box.readTextFile("a\0"), /NUL/],
  ];
  for (const [call, message] of wrong) {
    const error = await rejection(call());
    assert.equal(error.code, "INVALID_ARGUMENT", String(message));
    assert.match(error.message, message);
    assert.doesNotMatch(util.inspect(error), /s3cret/);
  }
  assert.deepEqual(world.calls, []);
});

test("content is what it was when writeFile was called, with and without an onSubmit", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create();
  for (const hook of [{}, { onSubmit: () => new Promise(setImmediate) }]) {
    const content = new TextEncoder().encode("before");
    const writing = box.writeFile("/a", content, { overwrite: true, ...hook });
    content.fill(0);
    await writing;
    assert.equal(await box.readTextFile("/a"), "before");
  }
});

test("[V21] a lost write says so, with its operation and sandbox", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  world.hold("writeFile");
  const controller = new AbortController();
  const writing = rejection(
    box.writeFile("/a", "x", { overwrite: true, signal: controller.signal }),
  );
  await world.arrival("writeFile");
  controller.abort();
  const error = await writing;
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.outcome.kind, "file_write");
  assert.equal(error.outcome.submitted, true);
  assert.deepEqual(error.outcome.sandbox, box.reference);
});

test("suspend and resume wait for the state, and say when nothing was to be done", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  await box.writeFile("/kept", "x", { overwrite: true });
  assert.deepEqual(await box.suspend(), { state: "suspended", alreadyThere: false });
  assert.deepEqual(await box.suspend(), { state: "suspended", alreadyThere: true });
  await assert.rejects(box.exec("true"), { code: "NOT_RUNNING" });
  assert.deepEqual(await box.resume(), { state: "running", alreadyThere: false });
  assert.deepEqual(await box.resume(), { state: "running", alreadyThere: true });
  assert.equal(await box.readTextFile("/kept"), "x");
  assert.equal(world.methods.filter((each) => each === "waitForSandbox").length, 3);
});

test("[V17] a preview's headers are there to use, and in no inspection or JSON", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const preview = await box.preview(3000);
  const { url, access, headers } = preview;
  assert.match(url, /-3000\./);
  assert.equal(access, "protected");
  assert.deepEqual(Object.entries(headers), [["X-Memory-Authorization", "preview-token-1234"]]);
  assert.doesNotMatch(util.inspect(preview) + JSON.stringify(preview), /preview-token/);
  for (const port of [0, 65536, 1.5, "3000", undefined, Number.NaN]) {
    await assert.rejects(box.preview(port), { code: "INVALID_ARGUMENT", message: /port must be/ });
  }
});
