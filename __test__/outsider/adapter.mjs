/**
 * The smallest adapter that keeps the contract: sandboxes that are folders of
 * this machine, commands in them, and a reason for everything else.
 *
 * As an outside author would write it: it imports the package by its name only.
 */

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BeachsideError } from "@beachside/runloop/client";

const supported = (value) => ({ status: "supported", ...(value === undefined ? {} : { value }) });

/** What it has; a leaf that it does not declare counts as unsupported. */
const CAPABILITIES = {
  sandboxes: { create: { status: "supported", options: ["env"] } },
  exec: { run: supported({ maxTimeoutSeconds: 3600, maxOutputBytes: 1048576 }) },
};

/** The provider: what is left when every connection is closed. */
export const sandboxes = new Map();

export const toyAdapter = {
  provider: "toy",
  contract: 1,
  setup: { credentials: {}, config: {} },
  connect: async () => new Connection(),
};

function find(id) {
  const sandbox = sandboxes.get(id);
  if (sandbox !== undefined) return sandbox;
  throw new BeachsideError(`There is no sandbox ${id}.`, {
    code: "NOT_FOUND",
    resource: { kind: "sandbox", id },
  });
}

const record = ({ id, state, createdAtMs, markers }) => ({
  id,
  state,
  providerState: state,
  createdAtMs,
  markers,
  reason: null,
  image: null,
  lifecycle: { lifetimeSeconds: null, idleSeconds: null },
  network: { policy: "unknown", policyId: null },
  differences: [],
  snapshotId: null,
});

class Connection {
  scope = { account: "me" };

  capabilities() {
    return CAPABILITIES;
  }

  async createSandbox({ markers, env = {} }) {
    const folder = await mkdtemp(path.join(tmpdir(), "toy-"));
    const id = path.basename(folder);
    const made = { id, folder, env, markers, state: "running", createdAtMs: Date.now() };
    sandboxes.set(id, made);
    return record(made);
  }

  async waitForSandbox({ sandboxId }) {
    return record(find(sandboxId));
  }

  async inspectSandbox({ sandboxId }) {
    return record(find(sandboxId));
  }

  async destroySandbox({ sandboxId }) {
    const sandbox = find(sandboxId);
    const alreadyGone = sandbox.state === "destroyed";
    sandbox.state = "destroyed";
    await rm(sandbox.folder, { recursive: true, force: true });
    return { alreadyGone };
  }

  async exec({
    sandboxId,
    command,
    cwd,
    env,
    stdin,
    timeoutSeconds = 600,
    maxOutputBytes = 1048576,
  }) {
    const sandbox = find(sandboxId);
    const [program, ...args] = typeof command === "string" ? ["/bin/sh", "-c", command] : command;
    const started = Date.now();
    const child = spawn(program, args, {
      cwd: cwd ?? sandbox.folder,
      env: { PATH: process.env.PATH, ...sandbox.env, ...env },
      timeout: timeoutSeconds * 1000,
    });
    child.stdin.on("error", () => {}).end(stdin ?? "");
    const kept = { stdout: [], stderr: [] };
    for (const stream of ["stdout", "stderr"]) {
      child[stream].on("data", (bytes) => kept[stream].push(bytes));
    }
    const exitCode = await new Promise((resolve) => {
      child.once("error", () => resolve(127));
      child.once("close", (code) => resolve(code ?? 137));
    });
    const stdout = Buffer.concat(kept.stdout);
    const stderr = Buffer.concat(kept.stderr);
    return {
      exitCode,
      stdout: new Uint8Array(stdout.subarray(0, maxOutputBytes)),
      stderr: new Uint8Array(stderr.subarray(0, maxOutputBytes)),
      stdoutBytes: stdout.length,
      stderrBytes: stderr.length,
      stdoutTruncated: stdout.length > maxOutputBytes,
      stderrTruncated: stderr.length > maxOutputBytes,
      durationMs: Date.now() - started,
    };
  }

  async close() {}
}
