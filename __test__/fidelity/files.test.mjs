// Files through read, write, upload and download.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { toFile } from "@runloop/api-client";
import { suite } from "./support/suite.mjs";

suite("files", (c) => {
  test("[SDK19] what is written to an absolute path is read back exactly", async (t) => {
    const box = await c.box(t);
    const contents = "Hello, 世界\n\ttabs and no last newline";
    const written = await box.file.write({ file_path: "/tmp/test.txt", contents });
    assert.equal(written.exit_status, 0);
    assert.equal(await box.file.read({ file_path: "/tmp/test.txt" }), contents);
  });

  test("[SDK19] a file is downloaded with its bytes", async (t) => {
    const box = await c.box(t);
    await box.cmd.exec("printf 'a\\0b\\377' > /tmp/bytes");
    const response = await box.file.download({ path: "/tmp/bytes" });
    assert.ok(response);
    const bytes = Buffer.from(await response.arrayBuffer());
    assert.deepEqual(bytes, Buffer.from([0x61, 0, 0x62, 0xff]));
  });

  test("[SDK19] what is uploaded under the home directory is read from there", async (t) => {
    const box = await c.box(t);
    const file = await toFile(Buffer.from("uploaded text"), "uploaded.txt");
    assert.notEqual(await box.file.upload({ path: "~/uploaded.txt", file }), undefined);
    assert.equal(await box.file.read({ file_path: "~/uploaded.txt" }), "uploaded text");
    const listed = await box.cmd.exec('cat "$HOME/uploaded.txt"');
    assert.equal(await listed.stdout(), "uploaded text");
  });

  test("a relative path is under the home directory", async (t) => {
    const box = await c.box(t);
    await box.file.write({ file_path: "relative.txt", contents: "here" });
    assert.equal(await (await box.cmd.exec("cat ~/relative.txt")).stdout(), "here");
    assert.equal(await box.file.read({ file_path: "relative.txt" }), "here");
  });

  test("megabytes of any bytes go up and come down unchanged", async (t) => {
    const box = await c.box(t);
    const bytes = randomBytes(5 * 1024 * 1024);
    await box.file.upload({ path: "/tmp/large.bin", file: await toFile(bytes, "large.bin") });
    const response = await box.file.download({ path: "/tmp/large.bin" });
    assert.ok(bytes.equals(Buffer.from(await response.arrayBuffer())));
  });

  test("an existing file is overwritten whole", async (t) => {
    const box = await c.box(t);
    await box.file.write({ file_path: "/tmp/again.txt", contents: "a longer first text" });
    await box.file.write({ file_path: "/tmp/again.txt", contents: "short" });
    assert.equal(await box.file.read({ file_path: "/tmp/again.txt" }), "short");
  });

  test("a missing file is an error whose text says so", async (t) => {
    const box = await c.box(t);
    await assert.rejects(box.file.read({ file_path: "/tmp/missing" }), {
      status: 404,
      message: /not found|no such file/i,
    });
    await assert.rejects(box.file.download({ path: "/tmp/missing" }), { status: 404 });
  });

  test("a directory is an error whose text says so", async (t) => {
    const box = await c.box(t);
    await assert.rejects(box.file.read({ file_path: "/tmp" }), {
      status: 400,
      message: /is a directory/i,
    });
  });
});
