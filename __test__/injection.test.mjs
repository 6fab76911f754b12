/** Text of callers and of the service stays text: in URLs, headers, bodies, shells and the guest's /tmp. */

import assert from "node:assert/strict";
import test from "node:test";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";
import { sandbox } from "./support/box.mjs";
import { rejection } from "./support/client.mjs";
import { connect, KEY, runloopClient, simulator } from "./support/runloop.mjs";

const ODD = [
  "../../etc/passwd",
  "a/b",
  "a?b=c&limit=5000",
  "a#b",
  "%2e%2e%2f",
  "a b+c",
  "'; touch /tmp/pwned; '",
  '"$(touch /tmp/pwned)`touch /tmp/pwned`"',
  "--help",
  "-rf",
  "*",
  "ü😀\u202e",
];
/** What no URL, header or argument can hold. */
const BROKEN = ["a\0b", "\ud800"];
const LINES = ["a\r\nx-evil: 1", "a\nb"];

test("ids of snapshots and processes are one segment of a path each, whatever is in them", async (t) => {
  const { box, client, service } = await sandbox(t);
  const { snapshot } = await box.snapshot();
  const process_ = await box.processes.start({ command: "true", output: { mode: "stream" } });
  await process_.wait();
  await service.clearJournal();
  for (const id of ODD) {
    for (const [call, before, after] of [
      [
        () => client.snapshots.get({ ...snapshot.reference, id }),
        "/v1/devboxes/disk_snapshots/",
        "/status",
      ],
      [
        () => box.processes.get({ ...process_.reference, id }),
        `/v1/devboxes/${box.reference.id}/executions/`,
        "",
      ],
    ]) {
      await service.clearJournal();
      const error = await rejection(call(), id);
      assert.match(error.code, /^(NOT_FOUND|INVALID_ARGUMENT)$/, `${id}: ${error}`);
      const { entries } = await service.journal();
      for (const { path } of entries) {
        assert.ok(path.startsWith(before) && path.endsWith(after), path);
        const segment = path.slice(before.length, path.length - after.length);
        assert.equal(decodeURIComponent(segment.split("/")[0]), id);
        assert.doesNotMatch(segment, /[?# ]/);
      }
    }
  }
});

test("labels, image names and markers go out in JSON as they are", async (t) => {
  const { box, client, service } = await sandbox(t);
  const labels = Object.fromEntries(ODD.concat(LINES).map((text, index) => [`k${index}`, text]));
  const { snapshot } = await box.snapshot({ labels });
  const { entries } = await service.journal();
  const { metadata } = entries.find(({ path }) => path.endsWith("snapshot_disk_async")).body;
  for (const [key, value] of Object.entries(labels)) assert.equal(metadata[key], value);
  assert.deepEqual((await snapshot.inspect()).labels, labels);
  for (const image of ODD) {
    const other = await connect(t, service, { config: { network: "internet", image } });
    await service.clearJournal();
    const error = await rejection(other.sandboxes.create(), image);
    assert.match(error.code, /^(NOT_FOUND|REJECTED)$/);
    const seen = await service.journal();
    for (const { method, path, query, body } of seen.entries) {
      assert.match(path, /^\/v1\/(devboxes|blueprints)(\/[^/?#]+)?$/);
      if (method === "POST") assert.equal(body.blueprint_name ?? body.blueprint_id, image);
      else if (query.name !== undefined) assert.equal(query.name, image);
      else if (path !== "/v1/blueprints") assert.equal(decodeURIComponent(path.slice(15)), image);
    }
  }
  await client.recover(snapshotOperation(client, 'a"b\\c&d=e?f'));
});

/** The operation of a capture that nobody made. */
function snapshotOperation(client, id) {
  return {
    version: 1,
    kind: "operation",
    provider: "runloop",
    scope: { account: client.scope.account },
    operation: "sandbox_create",
    operationId: id,
    submissionId: id,
    submittedAt: "2026-11-30T12:00:00.000Z",
  };
}

test("arguments, directories, variables, input and paths reach the guest byte for byte, and nothing in them runs", async (t) => {
  const { box } = await sandbox(t);
  const carry = async (text) => {
    const printed = await box.exec(["printf", "%s", text]);
    assert.equal(printed.stdoutText(), text);
    const env = await box.exec(["sh", "-c", 'printf %s "$ODD"'], { env: { ODD: text } });
    assert.equal(env.stdoutText(), text);
    const input = await box.exec(["cat"], { stdin: text });
    assert.equal(input.stdoutText(), text);
    if (!text.includes("..")) {
      const path = `/tmp/odd/${text}/file ${text}`;
      await box.writeFile(path, text, { overwrite: true });
      assert.equal(await box.readTextFile(path), text);
      const cwd = `/tmp/odd/${text}`;
      const where = await box.exec(["ls"], { cwd });
      assert.equal(where.exitCode, 0, `${cwd}: ${where.stderrText()}`);
    }
  };
  await Promise.all([...ODD, ...LINES].map(carry));
  assert.equal((await box.exec(["test", "-e", "/tmp/pwned"])).exitCode, 1);
});

test("what no request can hold is INVALID_ARGUMENT by name, and nothing is sent", async (t) => {
  const { box, client, service } = await sandbox(t);
  const { reference } = box;
  for (const text of BROKEN) {
    const calls = {
      "create env": () => client.sandboxes.create({ env: { A: text } }),
      "create env name": () => client.sandboxes.create({ env: { [text]: "A" } }),
      argv: () => box.exec(["printf", text]),
      cwd: () => box.exec("true", { cwd: text }),
      env: () => box.exec("true", { env: { A: text } }),
      path: () => box.readFile(text),
      label: () => box.snapshot({ labels: { a: text } }),
      reference: () => client.sandboxes.get({ ...reference, id: text }),
      account: () => client.sandboxes.get({ ...reference, scope: { account: text } }),
      operation: () => client.recover(snapshotOperation(client, text)),
      cursor: () => client.sandboxes.list({ cursor: text }),
    };
    for (const [name, call] of Object.entries(calls)) {
      const error = await rejection(call(), name);
      assert.equal(error.code, "INVALID_ARGUMENT", `${name}: ${error}`);
    }
  }
  for (const line of LINES) {
    const env = { [line]: "A" };
    await assert.rejects(client.sandboxes.create({ env }), { code: "INVALID_ARGUMENT" });
  }
  assert.deepEqual((await service.journal()).lines, []);
});

test("a key, an address or a domain that could add to a request is refused at connect", async (t) => {
  const service = await simulator(t);
  const good = { apiKey: KEY, baseUrl: service.url };
  const wrong = {
    apiKey: [`${KEY}\r\nx-evil: 1`, `${KEY}\0`, `${KEY} x`, `${KEY}ü`],
    baseUrl: [
      `${service.url}?a=b`,
      `${service.url}#a`,
      "https://user:pass@example.com",
      `${service.url}\r\nx: y`,
      "file:///etc/passwd",
    ],
    tunnelDomain: ["evil.example/x", "evil.example?x", "a b", "a\r\nb", "user@evil.example", ""],
  };
  for (const [field, values] of Object.entries(wrong)) {
    for (const value of values) {
      const adapter = () => Beachside.connect(runloop({ ...good, [field]: value }));
      const error = await rejection((async () => adapter())(), `${field} ${value}`);
      assert.match(error.code, /^(INVALID_ARGUMENT|UNAUTHENTICATED)$/, `${field}: ${error}`);
      assert.match(error.message, new RegExp(`${field}|^credentials`));
    }
  }
  assert.deepEqual((await service.journal()).lines, []);
});

test("a tunnel's key that would lead to another host is refused", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  for (const key of ["x.evil.example/", "a/b", "a@b", "a b", "", "x".repeat(64)]) {
    await service.fault({
      match: { method: "GET", path: "/v1/devboxes/*", count: 1 },
      action: { type: "edit_reply", set: { "/tunnel/tunnel_key": key } },
    });
    const error = await rejection(box.preview(3000), key);
    assert.equal(error.code, "NOT_FOUND");
  }
  await box.destroy();
});

test("files of ours in the guest lie in private directories with unguessable names, and are gone afterwards", async (t) => {
  const { box, outside } = await sandbox(t);
  const look = `ls -ld /tmp/beachside-* ; ls -l /tmp/beachside-*/ 2>/dev/null; true`;
  const { stdout } = await box.exec(["sh", "-c", look], { stdin: "private" });
  const listed = new TextDecoder().decode(stdout);
  const directories = listed.split("\n").filter((line) => line.startsWith("d"));
  assert.equal(directories.length, 1, listed);
  assert.match(directories[0], /^drwx------.* \/tmp\/beachside-[0-9a-f]{32}\.\w{6}$/);
  // The input was opened, and removed before the command started.
  assert.doesNotMatch(listed, /stdin/);
  const process_ = await box.processes.start({
    command: "echo x; sleep 60",
    output: { mode: "stream" },
  });
  for await (const text of process_.stdout) if (text.includes("x")) break;
  const live = await outside.run("ls -ld /tmp/beachside-* 2>/dev/null; true");
  for (const line of live.split("\n").filter((each) => each !== "")) {
    assert.match(line, /^(drwx------|-rw-------)/, line);
  }
  await process_.terminate();
  await outside.assertClean();
});

test("links that are planted under every name of ours are neither followed nor removed by anybody's clean-up", async (t) => {
  const { box, outside } = await sandbox(t);
  await outside.run("mkdir -p /tmp/treasure && echo gold > /tmp/treasure/gold");
  // A name that a call would have to guess, planted by one that lists /tmp.
  const plant = `for each in /tmp/beachside-*; do
    ln -sfn /tmp/treasure "$each.planted"; ln -sf /tmp/treasure/gold "$each/planted"
  done; echo planted`;
  const { stdout } = await box.exec(["sh", "-c", plant], { stdin: "x" });
  assert.equal(new TextDecoder().decode(stdout), "planted\n");
  const large = await box.exec(["sh", "-c", "head -c 100000 /dev/zero"]);
  assert.equal(large.stdout.length, 100_000);
  assert.equal((await outside.run("cat /tmp/treasure/gold")).trim(), "gold");
  // The target of a write is followed, as documented; the temporary file beside it is not.
  await outside.run("mkdir -p /home/user/d && ln -sf /tmp/treasure/gold /home/user/d/link");
  await box.writeFile("/home/user/d/link", "new", { overwrite: true });
  assert.equal((await outside.run("cat /tmp/treasure/gold")).trim(), "new");
  await outside.run("rm -rf /tmp/beachside-*");
});
