import assert from "node:assert/strict";
import { runInNewContext } from "node:vm";
import { bytes, hooks, json, rejection, run } from "./hooks.mjs";

const read = ({ command, ...options }) => JSON.parse(hooks.testArguments(command, options));
const sum = (view, milliseconds = 0) =>
  run(
    undefined,
    () => hooks.testBytesIn(bytes("content", view), milliseconds),
    (value) => value,
  );

function refused(run, what) {
  assert.throws(run, (error) => {
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, what);
    return true;
  });
}

export async function textCrossesWhole() {
  const command = ["a b", "", "é😀", "\u2028", "\ufeff", "\ufffd", "\x01\x7f", "x".repeat(200_000)];
  const env = Object.fromEntries([
    ["A", "1"],
    ["__proto__", "kept"],
    ["1", "numeric name"],
  ]);
  const limits = { timeoutSeconds: 0.25, maxOutputBytes: 1_048_576 };
  const request = { command, cwd: "/tmp/ü", env, ...limits };
  assert.deepEqual(read(request), request);
  assert.deepEqual(read({ command: "text", cwd: undefined }), {
    command: "text",
    cwd: null,
    env: null,
    timeoutSeconds: null,
    maxOutputBytes: null,
  });
}

export async function brokenTextIsRefusedByName() {
  for (const broken of ["\ud800", "a\udc00b", "\ude00\ud83d"]) {
    refused(() => read({ command: broken }), /command must not hold half of a surrogate pair/);
    refused(() => read({ command: ["ok", broken] }), /command must not hold half/);
    refused(() => read({ command: "x", cwd: broken }), /cwd must not hold half/);
    refused(() => read({ command: "x", env: { A: broken } }), /env\.A must not hold half/);
    refused(() => read({ command: "x", env: { [broken]: "1" } }), /env must not hold half/);
  }
  refused(() => read({ command: "a\0b" }), /command must not hold a NUL/);
  refused(() => read({ command: "x", env: { "A\0": "1" } }), /env must not hold a NUL/);
}

export async function wrongTypesAreRefusedByName() {
  refused(() => read({}), /command must be a string or an array/);
  for (const command of [5, null, {}, new String("x"), Symbol("x")]) {
    refused(() => read({ command }), /command must be a string or an array/);
  }
  refused(() => read({ command: ["a", 1] }), /command must be a string/);
  refused(() => read({ command: "x", cwd: 1 }), /cwd must be a string/);
  refused(() => read({ command: "x", env: ["A=1"] }), /env must be an object/);
  refused(() => read({ command: "x", env: { A: 1 } }), /env\.A must be a string/);
  refused(() => read({ command: "x", timeoutSeconds: "1" }), /timeoutSeconds must be a number/);
  for (const maxOutputBytes of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    refused(() => read({ command: "x", maxOutputBytes }), /maxOutputBytes must be a whole number/);
  }
}

export async function aViewSendsItsWindow() {
  const buffer = new Uint8Array([100, 1, 2, 3, 100]).buffer;
  assert.equal(await sum(new Uint8Array(buffer, 1, 3)), 6);
  assert.equal(await sum(Buffer.from(buffer, 1, 3)), 6);
  assert.equal(await sum(new Uint8Array(0)), 0);
  assert.equal(await sum(runInNewContext("new Uint8Array([4, 5])")), 9);
}

export async function bytesAreCopiedAtTheCall() {
  const view = new Uint8Array(1_000).fill(1);
  const call = sum(view, 50);
  view.fill(2);
  assert.equal(await call, 1_000);
  const moved = new Uint8Array(1_000).fill(1);
  const second = sum(moved, 50);
  structuredClone(moved, { transfer: [moved.buffer] });
  assert.equal(await second, 1_000);
}

export async function unusualBuffersAreCopiedOrRefused() {
  const shared = new Uint8Array(new SharedArrayBuffer(8), 2, 3).fill(5);
  assert.equal(await sum(shared), 15);

  const detached = new Uint8Array(8).fill(1);
  structuredClone(detached, { transfer: [detached.buffer] });
  assert.match((await rejection(sum(detached))).message, /content is a view of a buffer/);

  const resizable = new ArrayBuffer(8, { maxByteLength: 16 });
  const tracking = new Uint8Array(resizable).fill(1);
  const fixed = new Uint8Array(resizable, 4, 4);
  resizable.resize(12);
  assert.equal(await sum(tracking), 8);
  assert.equal(await sum(fixed), 4);
  resizable.resize(6);
  assert.equal(await sum(tracking), 6);
  assert.match((await rejection(sum(fixed))).message, /content is a view of a buffer/);

  for (const wrong of ["text", [1, 2], new ArrayBuffer(2), new Uint16Array(2), null]) {
    assert.equal((await rejection(sum(wrong))).code, "INVALID_ARGUMENT");
  }
}

export async function bytesComeOutAsPlainArrays() {
  for (const length of [0, 1, 4_095, 4_096, 4_097, 5_000_000]) {
    const array = await hooks.testBytesOut(length);
    assert.equal(Object.getPrototypeOf(array), Uint8Array.prototype);
    assert.equal(array.byteOffset, 0);
    assert.equal(array.buffer.byteLength, length);
    assert.ok(array.every((byte) => byte === 7));
    // Node 22 and Bun refuse to transfer memory that came from outside; a clone works.
    assert.deepEqual(structuredClone(array), array);
    array.fill(8);
  }
}

export async function onlyPlainDataBecomesJson() {
  const value = { a: [1, "x", true, null], b: { c: -0.5 }, d: undefined };
  assert.equal(json("config", value), '{"a":[1,"x",true,null],"b":{"c":-0.5}}');
  assert.equal(json("config", runInNewContext("({ a: [1] })")), '{"a":[1]}');
  const itself = {};
  itself.again = { itself };
  for (const [wrong, path] of [
    [{ a: () => 1 }, /^config\.a must be plain data, not a function/],
    [{ a: [1, Symbol("x")] }, /^config\.a\[1\] must be plain data, not a symbol/],
    [{ a: 1n }, /^config\.a must be plain data, not a bigint/],
    [{ a: { b: Number.NaN } }, /^config\.a\.b must be plain data, not a number/],
    [{ a: Number.POSITIVE_INFINITY }, /^config\.a must be/],
    [{ a: new Map() }, /^config\.a must be plain data, not an instance/],
    [{ a: new Date() }, /^config\.a must be/],
    [{ a: new URL("https://example.com") }, /^config\.a must be/],
    [{ a: [undefined] }, /^config\.a\[0\] must be plain data, not undefined/],
    [{ a: new Array(2) }, /^config\.a\[0\] must be plain data, not undefined/],
    [itself, /^config\.again\.itself must not contain itself/],
  ]) {
    refused(() => json("config", wrong), path);
  }
}
