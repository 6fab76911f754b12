/** Files of a sandbox, through the addon, against the simulator. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { requests, sandbox } from "./support/box.mjs";
import { rejection } from "./support/client.mjs";

const MAX = 64 * 1024 * 1024;
const replace = { overwrite: true };
const hash = (view) => createHash("sha256").update(view).digest("hex");

/** Bytes that are all different from their neighbours at any distance that matters. */
function noise(size) {
  const bytes = new Uint8Array(size);
  let state = 1;
  for (let index = 0; index < size; index++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}

test("[R24][H1][H2] every size is read back as it was written, in as few requests as can be", async (t) => {
  const { box, service, outside } = await sandbox(t);
  const script = ["execute"];
  for (const [size, writes, reads] of [
    [0, script, script],
    [1, script, script],
    [18_000, script, script],
    [18_001, script, script],
    [65_536, script, script],
    [65_537, ["upload_file", "execute"], ["execute", "download_file"]],
    [98_304, ["upload_file", "execute"], ["execute", "download_file"]],
    [98_305, ["upload_file", "execute"], ["execute", "download_file"]],
    [131_072, ["upload_file", "execute"], ["execute", "download_file"]],
    [1_048_576, ["upload_file", "execute"], ["execute", "download_file"]],
  ]) {
    const content = noise(size);
    await service.clearJournal();
    await box.writeFile("a/b/file", content, replace);
    assert.deepEqual(await requests(service), writes, `write ${size}`);
    await service.clearJournal();
    const read = await box.readFile("a/b/file");
    assert.deepEqual(await requests(service), reads, `read ${size}`);
    assert.ok(read instanceof Uint8Array);
    assert.equal(hash(read), hash(content), `${size}`);
  }
  await outside.assertClean();
  assert.equal(await outside.run("ls -A ~/a/b"), "file\n");
});

test("[R24][H1] 64 MiB exactly go and come, and one byte more is refused before any request", async (t) => {
  const { box, service, outside } = await sandbox(t);
  const content = noise(MAX);
  await box.writeFile("/tmp/most", content, replace);
  assert.equal(hash(await box.readFile("/tmp/most")), hash(content));
  await service.clearJournal();
  const error = await rejection(box.writeFile("/tmp/more", new Uint8Array(MAX + 1), replace));
  assert.equal(error.code, "INVALID_ARGUMENT");
  assert.deepEqual(await requests(service), []);
  await outside.run("head -c 67108865 /dev/zero >/tmp/more");
  const large = await rejection(box.readFile("/tmp/more"));
  assert.deepEqual([large.code, large.reason], ["FILE_ERROR", "too_large"]);
  await outside.assertClean();
});

test("[H3] binary stays binary, whichever kind of bytes is passed", async (t) => {
  const { box } = await sandbox(t);
  const all = Uint8Array.from({ length: 256 }, (_, index) => index);
  const png = Buffer.from("89504e470d0a1a0a", "hex");
  const mark = Buffer.from("efbbbf78", "hex");
  for (const content of [all, png, mark, Buffer.from("a\r\nb\r\n"), Buffer.from([0x80])]) {
    await box.writeFile("binary", content, replace);
    assert.deepEqual([...(await box.readFile("binary"))], [...content]);
  }
  const text = "\ufeffünï😀\r\n";
  await box.writeFile("text", text, replace);
  assert.equal(await box.readTextFile("text"), text);
  assert.equal(hash(await box.readFile("text")), hash(Buffer.from(text)));
});

test("[H3] a view sends only its window, and the caller may change or transfer it at once", async (t) => {
  const { box } = await sandbox(t);
  for (const size of [1_000, 100_000]) {
    const buffer = new Uint8Array(size + 20).fill(97);
    const view = buffer.subarray(10, size + 10);
    const writing = box.writeFile("view", view, replace);
    buffer.fill(98);
    structuredClone(buffer.buffer, { transfer: [buffer.buffer] });
    await writing;
    assert.equal(hash(await box.readFile("view")), hash(Buffer.alloc(size, "a")));
  }
});

test("[H7] odd names are exact, small and large", async (t) => {
  const { box, outside } = await sandbox(t);
  const names = [
    ..."a b|-rf|re\"port|r'x|back\\|new\nline|100%|%20|é|e\u0301|日本|*|$HOME|~|trailing ".split(
      "|",
    ),
    "x".repeat(255),
  ];
  for (const large of [false, true]) {
    const contents = names.map((name) =>
      Buffer.from(name.repeat(large ? 30_000 : 1)).subarray(0, 200_000),
    );
    for (const [index, name] of names.entries())
      await box.writeFile(name, contents[index], replace);
    for (const [index, name] of names.entries()) {
      assert.equal(hash(await box.readFile(name)), hash(contents[index]), name);
    }
  }
  const shown = await outside.run("cd; for f in * ; do printf '%s/' \"$f\"; done");
  assert.deepEqual(new Set(shown.split("/").slice(0, -1)), new Set(names));
  for (const call of [box.readFile("x".repeat(256)), box.writeFile("y".repeat(256), "", replace)]) {
    const error = await rejection(call);
    assert.deepEqual([error.code, error.reason], ["FILE_ERROR", "name_too_long"]);
  }
});

test("[H8] parents are made, and what is no file is told at once and kept", async (t) => {
  const { box, outside } = await sandbox(t);
  await box.writeFile("/tmp/a/b/c", "deep", replace);
  assert.equal(await box.readTextFile("/tmp/a/b/c"), "deep");
  await outside.run("cd; mkdir dir; touch dir/kept; mkfifo fifo; echo plain >plain");
  for (const [path, reason] of [
    ["dir", "is_directory"],
    ["dir/", "is_directory"],
    ["fifo", "not_regular"],
    ["/dev/null", "not_regular"],
  ]) {
    for (const call of [() => box.readFile(path), () => box.writeFile(path, "x", replace)]) {
      const error = await rejection(call(), path);
      assert.deepEqual([error.code, error.reason], ["FILE_ERROR", reason], path);
      assert.deepEqual(error.resource, { kind: "file", id: path });
    }
  }
  assert.equal((await rejection(box.readFile("missing"))).code, "NOT_FOUND");
  assert.equal((await rejection(box.readFile("plain/below"))).code, "NOT_FOUND");
  assert.equal(
    (await rejection(box.writeFile("plain/below", "x", replace))).reason,
    "not_directory",
  );
  assert.equal(await outside.run("cd; ls dir; cat plain"), "kept\nplain\n");
});

test("[H8] a relative path is taken from the home directory, wherever a command is", async (t) => {
  const { box } = await sandbox(t);
  await box.exec("cd /tmp");
  await box.writeFile("x.txt", "at home", replace);
  assert.equal((await box.exec("cat ~/x.txt")).stdoutText(), "at home");
});

test("[R24] mode is kept or set, a link is followed, hard links break", async (t) => {
  const { box } = await sandbox(t);
  await box.writeFile("script", "#!/bin/sh\necho ran\n", { ...replace, mode: 0o755 });
  assert.equal((await box.exec(["./script"])).stdoutText(), "ran\n");
  await box.writeFile("script", "#!/bin/sh\necho again\n", replace);
  assert.equal((await box.exec(["./script"])).stdoutText(), "again\n");
  await box.exec("ln -s script link; ln script hard");
  await box.writeFile("link", "new", replace);
  const look = await box.exec("readlink link; cat script; echo; cat hard");
  assert.equal(look.stdoutText(), "script\nnew\n#!/bin/sh\necho again\n");
});

test("[R24] a write that fails leaves the old content and no litter", async (t) => {
  const { box, service, outside } = await sandbox(t);
  await box.writeFile("file", "old", replace);
  for (const action of [
    { type: "drop_request" },
    { type: "drop_reply" },
    { type: "refuse", status: 503, body: "" },
  ]) {
    await service.fault({ match: { path: "/v1/devboxes/*/upload_file", count: 1 }, action });
    const error = await rejection(box.writeFile("file", new Uint8Array(100_000), replace));
    assert.equal(error.code, "UNAVAILABLE", action.type);
    assert.equal(error.outcome.submitted, false);
    assert.equal(await box.readTextFile("file"), "old");
    await outside.assertClean();
    assert.equal(await outside.run("ls -A ~"), "file\n");
  }
});

test("[R24] half of a file with a sound end is never taken for the file", async (t) => {
  const { box, service } = await sandbox(t);
  const content = noise(300_000);
  await box.writeFile("file", content, replace);
  const halved = (count) =>
    service.fault({
      match: { path: "/v1/devboxes/*/download_file", count },
      action: { type: "halve_reply" },
    });
  await halved(2);
  assert.equal(hash(await box.readFile("file")), hash(content));
  await halved(3);
  const error = await rejection(box.readFile("file"));
  assert.equal(error.code, "PROTOCOL");
  assert.match(error.message, /150000 bytes of a file of 300000/);
});

test("[R24] a file that grows while it is read comes as it was at some moment", async (t) => {
  const { box } = await sandbox(t);
  const appending = "n=200000; while [ -e go ]; do echo $n; n=$((n+1)); done >> log";
  await box.exec("seq 100000 199999 > log; touch go");
  const writer = await box.processes.start({ command: appending });
  for (let round = 0; round < 5; round++) {
    const lines = (await box.readTextFile("log")).split("\n").slice(0, -1);
    assert.ok(lines.length >= 100_000);
    assert.ok(lines.every((line, index) => Number(line) === 100_000 + index));
  }
  await box.exec("rm go");
  await writer.wait();
});

test("[R31] a lost answer to a write is unknown, to a read unavailable, and neither is sent again", async (t) => {
  const { box, service } = await sandbox(t);
  const lost = {
    match: { path: "/v1/devboxes/*/execute", count: 1 },
    action: { type: "drop_reply" },
  };
  await service.fault(lost);
  const write = await rejection(box.writeFile("file", "new", replace));
  assert.equal(write.code, "OUTCOME_UNKNOWN");
  assert.deepEqual(await requests(service), ["execute"]);
  assert.equal(await box.readTextFile("file"), "new", "it was written all the same");
  await service.fault(lost);
  assert.equal((await rejection(box.readFile("file"))).code, "UNAVAILABLE");
});

test("[H8] a file that is missing and a sandbox that is gone are told apart", async (t) => {
  const { box } = await sandbox(t);
  assert.equal((await rejection(box.readFile("missing"))).resource.kind, "file");
  await box.suspend();
  assert.equal((await rejection(box.readFile("missing"))).code, "NOT_RUNNING");
  assert.equal((await rejection(box.writeFile("x", "y", replace))).code, "NOT_RUNNING");
});
