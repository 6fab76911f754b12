/** What people write who come from other libraries: each message says what to write instead. */

import assert from "node:assert/strict";
import test from "node:test";
import { runloop, runloopAdapter } from "@beachside/runloop";
import { Beachside } from "beachside";
import { sandbox } from "./support/box.mjs";
import { memoryClient, rejection } from "./support/client.mjs";
import { keepSecret } from "./support/leaks.mjs";

const SECRET = keepSecret("a habit's value", "ak_habit_secret_1234567890");
const ARGV = /a program with its arguments is one array: \["echo", "hi"\]$/;
const SECONDS = /did you mean "timeoutSeconds", in seconds\?$/;
const LIFETIME = /write lifecycle: \{ lifetimeSeconds \}, in seconds$/;
const SETTING = /it is a setting of the connection/;

test("a call in another library's way is refused with what to write here", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const exec = (options) => () => box.exec(["ls"], options);
  const start = (options) => () => box.processes.start({ command: ["ls"], ...options });
  const create = (options) => () => client.sandboxes.create(options);
  world.calls.length = 0;
  for (const [call, message] of [
    [() => box.exec("echo", "hi"), ARGV],
    [() => box.exec("echo", ["hi"]), ARGV],
    [() => box.exec({ cmd: "echo" }), /or a string \(shell text\), not an object\.$/],
    [exec({ args: ["-l"] }), ARGV],
    [exec({ timeout: 5 }), SECONDS],
    [exec({ timeoutMs: 5000 }), SECONDS],
    [exec({ request_timeout_ms: 5000 }), SECONDS],
    [exec({ workdir: "/" }), /did you mean "cwd"\?$/],
    [exec({ environment_variables: {} }), /did you mean "env"\?$/],
    [exec({ input: SECRET }), /did you mean "stdin"\?$/],
    [exec({ reject: true }), /did you mean "check"\?$/],
    [exec({ cancelSignal: AbortSignal.timeout(9) }), /did you mean "signal"\?$/],
    [exec({ maxBuffer: 9 }), /did you mean "maxOutputBytes"\?$/],
    [exec({ background: true }), /processes\.start\(\) does that$/],
    [exec({ user: "root" }), /no call chooses the user/],
    [exec({ signal: new AbortController() }), /pass controller\.signal$/],
    [exec({ env: [`A=${SECRET}`] }), /env must be a plain object of strings, not an array\.$/],
    [exec({ env: { PORT: 3000 } }), /env\.PORT must be a string, not a number\.$/],
    [() => box.processes.start({ cmd: "ls" }), /did you mean "command"\?$/],
    [() => box.processes.start("ls"), /not a string; write \{ command: \["echo", "hi"\] \}$/],
    [start({ timeoutSeconds: 5 }), /no deadline; kill\(\) or terminate\(\) ends it$/],
    [start({ onStdout() {} }), /read process\.stdout, process\.stderr or process\.output$/],
    [() => box.readFile("/a", "utf8"), /^readFile: .*readTextFile\(\) gives text$/],
    [() => box.readFile("/a", { encoding: "utf8" }), /readTextFile\(\) gives text$/],
    [() => box.writeFile("/a", "", { overwrite: true, mode: "755" }), /write 0o755$/],
    [() => box.preview("3000"), /not a string\.$/],
    [() => box.waitForPort(80, { timeoutMs: 100 }), SECONDS],
    [() => box.snapshot({ name: "a" }), /labels describe it$/],
    [create({ timeout: 60 }), LIFETIME],
    [create({ lifetimeSeconds: 60 }), LIFETIME],
    [create({ lifecycle: 60 }), /lifecycle must be \{ lifetimeSeconds \}, not a number\.$/],
    [create({ lifecycle: { timeout: 60 } }), /did you mean "lifetimeSeconds", in seconds\?$/],
    [create({ image: "x" }), SETTING],
    [create({ resources: {} }), SETTING],
    [create("base"), /the image is a setting of the connection$/],
    [create({ ports: [3000] }), /preview\(port\) gives the address of any port$/],
    [create({ name: "a" }), /keep box\.reference to find it again$/],
    [create({ network: true }), /or \{ allow: \[\.\.\.\] \}, not true\.$/],
    [create({ network: SECRET }), /not another string\.$/],
    [() => client.sandboxes.list({ pageSize: 5 }), /^sandboxes\.list: .*did you mean "limit"\?$/],
    [() => client.sandboxes.get(box.reference.id), /an id alone does not do\.$/],
    [() => client.sandboxes.get(box), /this is a handle, pass its reference\.$/],
    [
      () => client.sandboxes.with(() => {}),
      /the first are the sandbox's options, \{\} for none\.$/,
    ],
    [() => client.recover(box.reference), /onSubmit and error\.outcome\.operation give one\.$/],
  ]) {
    const error = await rejection(Promise.resolve().then(call), String(message));
    assert.equal(error.code, "INVALID_ARGUMENT", `${message}: ${error}`);
    assert.match(error.message, message);
  }
  assert.deepEqual(world.calls, []);
});

test("a connection in another library's way is refused with what to write here", async () => {
  const key = { apiKey: SECRET };
  const bound = (settings) => () => Beachside.connect(runloop({ ...key, ...settings }));
  for (const [connect, message] of [
    [() => Beachside.connect(runloop), /call it\.$/],
    [() => Beachside.connect({ adapter: runloop }), /call it\.$/],
    [() => Beachside.connect({ adapter: runloopAdapter, ...key }), /in credentials: \{ … \}$/],
    [
      () => Beachside.connect({ adapter: runloopAdapter, network: "internet" }),
      /in config: \{ … \}$/,
    ],
    [
      () => Beachside.connect({ adapter: runloopAdapter, config: key }),
      /"apiKey"; it stands in credentials/,
    ],
    [() => Beachside.connect(runloop(key), { config: {} }), /give it to the adapter/],
    [() => Beachside.connect(runloop({ bearerToken: SECRET })), /did you mean "apiKey"\?/],
    [bound({ baseURL: "https://x.example" }), /did you mean "baseUrl"\?/],
    [bound({ network: true }), /network must be "blocked" or "internet", not true$/],
    [bound({ network: SECRET }), /"internet", not another string$/],
    [bound({ resources: { cpu: 2 } }), /did you mean "vcpus"\?$/],
    [bound({ resources: { memory: 4 } }), /did you mean "memoryMiB"\?$/],
    [bound({ lifecycle: { timeoutMs: 5 } }), /did you mean "lifetimeSeconds"\?$/],
    [bound({ preview: "public" }), /such as \{ access: "public" \}, not a string$/],
    [bound({ template: "base" }), /did you mean "image"\?$/],
  ]) {
    const error = await rejection(Promise.resolve().then(connect), String(message));
    assert.equal(error.code, "INVALID_ARGUMENT", `${message}: ${error}`);
    assert.match(error.message, message);
  }
});

test("[B6] a program that is not there is named alone, with 127", async (t) => {
  const { box } = await sandbox(t);
  const { exitCode, stderr } = await box.exec(["echo hi"]);
  assert.deepEqual([exitCode, new TextDecoder().decode(stderr)], [127, "echo hi: not found\n"]);
  const process = await box.processes.start({ command: ["echo hi"] });
  let said = "";
  for await (const text of process.stderr) said += text;
  assert.deepEqual([(await process.wait()).exitCode, said], [127, "echo hi: not found\n"]);
});

test("a sandbox that does not run is told to be resumed only where it can be", async (t) => {
  const { client, box: suspended } = await sandbox(t);
  await suspended.suspend();
  const gone = await client.sandboxes.create();
  await gone.destroy();
  for (const [box, reason, suggestion] of [
    [suspended, "suspended", /^resume\(\) starts it again/],
    [gone, "ended", /^Make another/],
  ]) {
    for (const [name, call] of [
      ["exec", () => box.exec(["true"])],
      ["readFile", () => box.readFile("/etc/hostname")],
      ["writeFile", () => box.writeFile("/tmp/x", "", { overwrite: true })],
      ["preview", () => box.preview(80)],
      ["start", () => box.processes.start({ command: ["true"] })],
      ["waitForPort", () => box.waitForPort(80)],
    ]) {
      const error = await rejection(call(), name);
      assert.deepEqual([name, error.code, error.reason], [name, "NOT_RUNNING", reason]);
      assert.match(error.suggestion, suggestion, name);
    }
  }
});
