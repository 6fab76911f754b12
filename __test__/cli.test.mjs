/** The command line, as a user runs it: a process with arguments, against the simulator. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { root } from "../scripts/files.mjs";
import { count, KEY, simulator } from "./support/runloop.mjs";

/** A simulator, a folder for saved references, and `beachside` with both. */
async function commandLine(t) {
  const service = await simulator(t);
  const folder = mkdtempSync(path.join(os.tmpdir(), "beachside-cli-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const env = {
    ...process.env,
    RUNLOOP_API_KEY: KEY,
    RUNLOOP_BASE_URL: service.url,
    BEACHSIDE_STATE: path.join(folder, "state"),
  };
  /** Runs it; `when` sees the child as soon as it wrote something. */
  const run = (args, { input, when, env: more = {} } = {}) =>
    new Promise((resolve, reject) => {
      const bin = path.join(root, "cli/bin/beachside.mjs");
      const child = spawn(process.execPath, [bin, ...args], { env: { ...env, ...more } });
      const shown = { stdout: [], stderr: [] };
      for (const stream of ["stdout", "stderr"]) {
        child[stream].on("data", (bytes) => shown[stream].push(bytes));
      }
      child.stdin.end(input);
      when?.(child);
      child.once("error", reject);
      child.once("close", (code, signal) => {
        const bytes = Buffer.concat(shown.stdout);
        const stderr = Buffer.concat(shown.stderr).toString();
        resolve({ code, signal, bytes, stdout: bytes.toString(), stderr });
      });
    });
  /** Runs it and gives what it printed; it must succeed. */
  const ok = async (...args) => {
    const ended = await run(args);
    assert.equal(ended.code, 0, `${args.join(" ")}: ${ended.stderr}`);
    return ended.stdout.trimEnd();
  };
  return { service, folder, env, run, ok };
}

test("[R14] [R15] exec passes arguments, bytes and the exit code through, in both directions", async (t) => {
  const { run, ok } = await commandLine(t);
  const id = await ok("create", "--name", "mine", "--env", "WHO=you=me");
  assert.match(id, /^dbx_/);
  const script = 'printf "%s|" "$WHO" "$@"; echo problem >&2; exit 7';
  const ended = await run(["exec", "mine", "--", "sh", "-c", script, "sh", "a b", "", "--json"]);
  assert.deepEqual(
    { code: ended.code, stdout: ended.stdout, stderr: ended.stderr },
    { code: 7, stdout: "you=me|a b||--json|", stderr: "problem\n" },
  );
  const all = Buffer.from(Uint8Array.from({ length: 256 }, (_, value) => value));
  assert.deepEqual((await run(["exec", "-i", id, "cat"], { input: all })).bytes, all);
  assert.equal(await ok("exec", "-s", "-C", "/tmp", id.slice(0, 12), "pwd | tr a-z A-Z"), "/TMP");
  const json = JSON.parse((await run(["--json", "exec", "mine", "printf", "\\377"])).stdout);
  assert.equal(json.stdout, Buffer.from([255]).toString("base64"));
});

test("[R20] [R23] a process can be followed, left, found again and ended", async (t) => {
  const { run, ok } = await commandLine(t);
  await ok("create", "--name", "mine");
  const followed = await run([
    "exec",
    "-f",
    "mine",
    "--",
    "sh",
    "-c",
    "echo out; echo err >&2; exit 5",
  ]);
  assert.deepEqual([followed.code, followed.stdout, followed.stderr], [5, "out\n", "err\n"]);
  const id = await ok(
    "exec",
    "-d",
    "mine",
    "--",
    "sh",
    "-c",
    "echo begun; sleep 1; echo done; exit 6",
  );
  const now = await run(["logs", id]);
  assert.equal(now.code, 0);
  assert.match(now.stdout, /^begun\n/);
  const rest = await run(["logs", "-f", id]);
  assert.deepEqual([rest.code, rest.stdout], [6, "begun\ndone\n"]);
  const sleeper = await ok("exec", "-d", "mine", "sleep", "600");
  assert.match(await ok("kill", sleeper), /^ended with \d+$/);
  assert.match((await run(["logs", sleeper])).stderr, /no process/);
});

test("[R24] cp keeps every byte and the permission bits", async (t) => {
  const { folder, ok, run } = await commandLine(t);
  await ok("create", "--name", "mine");
  const local = path.join(folder, "all bytes.bin");
  const bytes = Buffer.from(Uint8Array.from({ length: 70_000 }, (_, at) => (at * 7) % 256));
  writeFileSync(local, bytes, { mode: 0o750 });
  await ok("cp", local, "mine:/tmp/");
  assert.equal(await ok("exec", "mine", "stat", "-c", "%a", "/tmp/all bytes.bin"), "750");
  await ok("cp", "mine:/tmp/all bytes.bin", path.join(folder, "back"));
  assert.deepEqual(readFileSync(path.join(folder, "back")), bytes);
  const missing = await run(["cp", "mine:/no/file", folder]);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /NOT_FOUND/);
  assert.equal((await run(["cp", local, folder])).code, 2);
});

test("[R26] snapshot create, create --snapshot and restore work as documented", async (t) => {
  const { ok, service } = await commandLine(t);
  await ok("create", "--name", "source");
  await ok("exec", "-s", "source", "echo kept > /home/user/kept");
  const snapshot = await ok("snapshot", "create", "source", "--name", "saved");
  assert.match(await ok("snapshot", "ls"), new RegExp(`${snapshot}  saved .*  yes$`, "m"));
  const copy = await ok("create", "--snapshot", "saved");
  assert.equal(await ok("exec", copy, "cat", "/home/user/kept"), "kept");
  await ok("restore", snapshot, "--name", "third");
  await ok("snapshot", "rm", "saved");
  await ok("destroy", "source", copy, "third");
  assert.equal(await count(service, "POST /v1/devboxes/*/shutdown"), 3);
  assert.equal(await ok("ls"), "ID  NAME  STATE  CREATED  MINE");
});

test("[R11] a preview shows its secret header only when asked", async (t) => {
  const { ok } = await commandLine(t);
  await ok("create", "--name", "mine");
  const { url } = JSON.parse(await ok("--json", "preview", "mine", "3000"));
  assert.match(url, /^http:\/\/3000-/);
  assert.doesNotMatch(await ok("preview", "mine", "3000"), /Authorization/i);
  assert.match(await ok("preview", "mine", "3000", "--show-header"), /Authorization: Bearer \S+$/);
});

test("[V20] gc finds what a create made whose answer was lost, and destroys what is ours", async (t) => {
  const { run, ok, service } = await commandLine(t);
  await service.fault({
    match: { method: "POST", path: "/v1/devboxes", count: 1 },
    action: { type: "drop_reply" },
  });
  const lost = await run(["create", "--name", "lost"]);
  assert.equal(lost.code, 1);
  assert.match(lost.stderr, /OUTCOME_UNKNOWN[\s\S]*beachside gc/);
  const id = (await ok("ls")).match(/dbx_\w+/)[0];
  const found = await ok("gc");
  assert.match(found, new RegExp(`sandbox +${id} +still there`));
  assert.match(await ok("gc", "--yes"), new RegExp(`sandbox +${id} +destroyed`));
  assert.equal(await ok("gc"), "KIND  ID  WHAT");
  assert.equal(await count(service, "POST /v1/devboxes"), 1);
});

test("[F7] Ctrl-C ends the command in the sandbox and says what is left", async (t) => {
  const { run, ok, service } = await commandLine(t);
  const id = await ok("create");
  const when = async (child) => {
    while ((await count(service, "POST /v1/devboxes/*/execute")) === 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    child.kill("SIGINT");
  };
  const ended = await run(["exec", id, "sleep", "600"], { when });
  assert.equal(ended.code, 130);
  assert.match(ended.stderr, new RegExp(`killed[\\s\\S]*beachside destroy ${id}`));
});

test("[V17] nothing that it prints or saves holds the key or a variable, and errors cannot write to the terminal", async (t) => {
  const { run, ok, service, env } = await commandLine(t);
  await ok("create", "--name", "mine", "-e", "TOKEN=do-not-show-this");
  await service.fault({
    match: { path: "/v1/devboxes/*/execute" },
    action: { type: "refuse", status: 422, body: { message: `\u001b[31mno ${KEY}\u0007` } },
  });
  const refused = await run(["exec", "mine", "true"]);
  assert.equal(refused.code, 125);
  assert.match(refused.stderr, /REJECTED/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
  assert.doesNotMatch(refused.stderr, /[\u001b\u0007]/);
  assert.doesNotMatch(refused.stderr, new RegExp(KEY));
  const json = JSON.parse((await run(["--json", "exec", "mine", "true"])).stderr);
  assert.equal(json.error.code, "REJECTED");
  const [account] = readdirSync(env.BEACHSIDE_STATE);
  const folder = path.join(env.BEACHSIDE_STATE, account);
  const files = readdirSync(folder).map((name) => path.join(folder, name));
  assert.equal(files.length, 1);
  assert.equal(statSync(files[0]).mode & 0o777, 0o600);
  assert.doesNotMatch(readFileSync(files[0], "utf8"), /do-not-show-this/);
  assert.doesNotMatch(readFileSync(files[0], "utf8"), new RegExp(KEY));
});

test("wrong usage is 2 and says what is wrong; a missing key names the variable", async (t) => {
  const { run } = await commandLine(t);
  for (const args of [["create", "--lifetim", "5"], ["exec"], ["preview", "a", "x"], ["nothing"]]) {
    assert.equal((await run(args)).code, 2, args.join(" "));
  }
  const keyless = await run(["ls"], { env: { RUNLOOP_API_KEY: "" } });
  assert.equal(keyless.code, 1);
  assert.match(keyless.stderr, /RUNLOOP_API_KEY/);
  assert.equal((await run(["--simulator", "ls"], { env: { RUNLOOP_API_KEY: "" } })).code, 1);
  assert.match((await run(["--version"])).stdout, /^\d+\.\d+\.\d+\n$/);
});

test("--json and --simulator count before and behind the command", async (t) => {
  const { run, ok } = await commandLine(t);
  const { id } = JSON.parse(await ok("create", "--json"));
  assert.deepEqual(await ok("ls", "--json"), await ok("--json", "ls"));
  assert.equal(JSON.parse(await ok("exec", "--json", id, "true")).exitCode, 0);
  assert.equal(await ok("exec", id, "echo", "--json"), "--json");
  const made = JSON.parse(await ok("snapshot", "create", "--json", id));
  assert.equal(made.kind, "snapshot");
  const lost = await run(["exec", "--json", "nowhere", "true"]);
  assert.equal(lost.code, 125);
  assert.match(JSON.parse(lost.stderr).error.message, /There is no sandbox "nowhere"/);
  assert.equal((await run(["ls", "--simulator"], { env: { RUNLOOP_API_KEY: KEY } })).code, 0);
});

test("[F7] Ctrl-C of a command that is followed kills it and names the sandbox; of logs -f it kills nothing", async (t) => {
  const { run, ok } = await commandLine(t);
  const id = await ok("create");
  const interrupt = (child) => child.stdout.once("data", () => child.kill("SIGINT"));
  const followed = await run(["exec", "-f", "-s", id, "echo begun; sleep 600"], {
    when: interrupt,
  });
  assert.deepEqual([followed.code, followed.stdout], [130, "begun\n"]);
  assert.match(followed.stderr, new RegExp(`killed[\\s\\S]*beachside destroy ${id}`));
  const process = await ok("exec", "-d", "-s", id, "echo begun; sleep 600");
  const left = await run(["logs", "-f", process], { when: interrupt });
  assert.equal(left.code, 130);
  assert.match(left.stderr, new RegExp(`goes on: beachside kill ${process}`));
  assert.equal(JSON.parse(await ok("--json", "kill", process)).exitCode, 137);
});

test("[F7] Ctrl-C of a create says what it leaves, and gc finds it", async (t) => {
  const { run, ok, service } = await commandLine(t);
  await service.set({ boot_ms: 600_000 });
  const when = async (child) => {
    while ((await count(service, "POST /v1/devboxes/*/wait_for_status")) === 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    child.kill("SIGINT");
  };
  const ended = await run(["create", "--name", "left"], { when });
  assert.equal(ended.code, 130);
  const [, id] = /The sandbox goes on: beachside destroy (dbx_\w+)/.exec(ended.stderr);
  assert.match(ended.stderr, /`beachside gc` finds out what it made/);
  assert.match(await ok("gc"), new RegExp(`sandbox +${id} +still there`));
  await ok("destroy", id);
});
