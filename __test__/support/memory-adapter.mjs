/**
 * The adapter interface in front of memory-world.mjs. Implements every method,
 * so that the client's own logic can be tested without the addon, and the
 * contract suite has a second adapter.
 */

import { spawn } from "node:child_process";
import { BeachsideError, UnsupportedFeatureError } from "@beachside/runloop/client";
import { memoryCapabilities } from "./memory-capabilities.mjs";
import { MemoryProcess } from "./memory-process.mjs";
import { abortable, MemoryWorld, missing } from "./memory-world.mjs";

/**
 * An adapter and its world. Adapters that share a world are connections of
 * different processes to one provider.
 */
export function memoryAdapter({
  world = new MemoryWorld(),
  account = "acct_1",
  capabilities,
} = {}) {
  const tree = memoryCapabilities(capabilities);
  const adapter = {
    provider: "memory",
    contract: 1,
    setup: { credentials: {}, config: {} },
    async connect({ config, signal } = {}) {
      if (config?.image?.kind === "oci") {
        throw new UnsupportedFeatureError("images.oci is not supported", {
          feature: "images.oci",
          unmetRequirements: [{ requirement: "images.oci", reason: "None here." }],
        });
      }
      await abortable(
        world.run("connect", {}, async () => {}),
        signal,
      );
      return new MemoryConnection(world, account, tree);
    },
  };
  return { adapter, world, capabilities: tree };
}

class MemoryConnection {
  #world;
  #capabilities;
  #closed = Promise.withResolvers?.() ?? withResolvers();

  constructor(world, account, capabilities) {
    this.#world = world;
    this.#capabilities = capabilities;
    this.scope = { account };
    this.#closed.promise.catch(() => {});
  }

  capabilities() {
    return this.#capabilities;
  }

  async close() {
    this.#closed.reject(undefined);
  }

  /** A read: ends with the signal, and with CLOSED. */
  #read(method, request, call, act) {
    const closed = this.#closed.promise.catch(() => {
      throw new BeachsideError("The connection is closed.", { code: "CLOSED" });
    });
    return abortable(
      Promise.race([this.#world.run(method, request, async () => act()), closed]),
      call?.signal,
    );
  }

  /** A mutation: once it is with the provider, ending early leaves the outcome unknown. */
  #mutate(method, request, call, act) {
    const closed = this.#closed.promise.catch(() => {
      throw new BeachsideError("The connection was closed while the call was under way.", {
        code: "OUTCOME_UNKNOWN",
        outcome: { submitted: true },
      });
    });
    return abortable(
      Promise.race([this.#world.run(method, request, async () => act()), closed]),
      call?.signal,
      () => ({ submitted: true }),
    );
  }

  async createSandbox(request, call) {
    return this.#mutate("createSandbox", request, call, () => {
      const source =
        request.snapshotId === undefined
          ? undefined
          : this.#world.find("snapshot", request.snapshotId);
      const sandbox = {
        id: this.#world.id("sandbox"),
        state: "starting",
        createdAtMs: Date.now(),
        files: new Map(source?.files),
        ...request,
      };
      this.#world.sandboxes.set(sandbox.id, sandbox);
      setImmediate(() => {
        if (sandbox.state === "starting" && !sandbox.stuck)
          this.#world.setState(sandbox, "running");
      });
      return sandboxRecord(sandbox);
    });
  }

  async waitForSandbox({ sandboxId, state }, call) {
    return this.#read("waitForSandbox", { sandboxId, state }, call, async () => {
      const sandbox = this.#world.find("sandbox", sandboxId);
      const final = ["failed", "destroyed"];
      await this.#world.until(() => sandbox.state === state || final.includes(sandbox.state));
      if (sandbox.state !== state) {
        throw new BeachsideError(`The sandbox ended: ${sandbox.state}.`, {
          code: sandbox.state === "failed" ? "SANDBOX_FAILED" : "NOT_RUNNING",
        });
      }
      return sandboxRecord(sandbox);
    });
  }

  async inspectSandbox({ sandboxId }, call) {
    return this.#read("inspectSandbox", { sandboxId }, call, () =>
      sandboxRecord(this.#world.find("sandbox", sandboxId)),
    );
  }

  async listSandboxes(request, call) {
    return this.#read("listSandboxes", request, call, () => {
      const all = [...this.#world.sandboxes.values()].filter(
        (each) => request.state === undefined || each.state === request.state,
      );
      return page(all, request, sandboxRecord);
    });
  }

  async suspendSandbox({ sandboxId }, call) {
    return this.#mutate("suspendSandbox", { sandboxId }, call, () => {
      const sandbox = this.#world.find("sandbox", sandboxId);
      const alreadyThere = sandbox.state === "suspended";
      sandbox.state = "suspended";
      return { alreadyThere };
    });
  }

  async resumeSandbox({ sandboxId }, call) {
    return this.#mutate("resumeSandbox", { sandboxId }, call, () => {
      const sandbox = this.#world.find("sandbox", sandboxId);
      const alreadyThere = sandbox.state === "running";
      sandbox.state = "running";
      return { alreadyThere };
    });
  }

  async destroySandbox({ sandboxId }, call) {
    return this.#mutate("destroySandbox", { sandboxId }, call, () => {
      const sandbox = this.#world.find("sandbox", sandboxId);
      const alreadyGone = sandbox.state === "destroyed";
      sandbox.state = "destroyed";
      return { alreadyGone };
    });
  }

  /** Runs the command on this machine: enough to see what reaches a command and what comes back. */
  async exec(request, call) {
    // Copied before the call returns, as the interface says.
    const stdin = request.stdin && Uint8Array.from(request.stdin);
    return this.#mutate("exec", request, call, async () => {
      const sandbox = this.#world.find("sandbox", request.sandboxId);
      if (sandbox.state !== "running") {
        throw new BeachsideError(`The sandbox is ${sandbox.state}.`, { code: "NOT_RUNNING" });
      }
      return run({ ...request, stdin }, { ...sandbox.env, ...request.env });
    });
  }

  async startProcess(request, call) {
    return this.#mutate("startProcess", request, call, () => {
      this.#world.find("sandbox", request.sandboxId);
      const process = new MemoryProcess(this.#world, this.#world.id("process"));
      this.#world.processes.set(process.id, process);
      if (this.#world.runsProcesses) process.run(command(request), request.env);
      return process.view();
    });
  }

  async openProcess(request, call) {
    return this.#read("openProcess", request, call, () => {
      const process = this.#world.find("process", request.processId);
      return process.view(request.stdoutOffset, request.stderrOffset);
    });
  }

  async readFile({ sandboxId, path }, call) {
    return this.#read("readFile", { sandboxId, path }, call, () => {
      const { files, key } = this.#place(sandboxId, path);
      if (!files.has(key)) throw missing("file", path);
      return Uint8Array.from(files.get(key));
    });
  }

  async writeFile(request, call) {
    const content = Uint8Array.from(request.content);
    return this.#mutate("writeFile", request, call, () => {
      this.#world.onTransfer?.(call.onProgress);
      const { files, key, readOnly } = this.#place(request.sandboxId, request.path);
      if (readOnly) {
        throw new BeachsideError("The volume is read-only.", {
          code: "FILE_ERROR",
          reason: "permission",
        });
      }
      files.set(key, content);
    });
  }

  async preview({ sandboxId, port }, call) {
    return this.#read("preview", { sandboxId, port }, call, () => {
      this.#world.find("sandbox", sandboxId);
      return {
        url: `https://${sandboxId}-${port}.memory.invalid/`,
        access: "protected",
        headers: { "X-Memory-Authorization": "preview-token-1234" },
      };
    });
  }

  async captureSnapshot(request, call) {
    return this.#mutate("captureSnapshot", request, call, () => {
      const sandbox = this.#world.find("sandbox", request.sandboxId);
      if (sandbox.state === "destroyed") {
        throw new BeachsideError("The sandbox is destroyed.", { code: "NOT_RUNNING" });
      }
      const behavior = this.#capabilities.snapshots.capture.value;
      if (behavior.interruption === "stop") sandbox.state = "suspended";
      const snapshot = {
        id: this.#world.id("snapshot"),
        state: "creating",
        createdAtMs: Date.now(),
        sourceSandboxId: sandbox.id,
        files: new Map(sandbox.files),
        ...request,
      };
      this.#world.snapshots.set(snapshot.id, snapshot);
      setImmediate(() => {
        if (snapshot.state === "creating" && !snapshot.stuck) {
          snapshot.state = "ready";
          this.#world.changed();
        }
      });
      return snapshotRecord(snapshot);
    });
  }

  async waitForSnapshot({ snapshotId }, call) {
    return this.#read("waitForSnapshot", { snapshotId }, call, async () => {
      const snapshot = this.#world.find("snapshot", snapshotId);
      await this.#world.until(() => snapshot.state !== "creating");
      if (snapshot.state !== "ready") {
        throw new BeachsideError(`The snapshot ended: ${snapshot.reason ?? snapshot.state}.`, {
          code: "REJECTED",
        });
      }
      return snapshotRecord(snapshot);
    });
  }

  async inspectSnapshot({ snapshotId }, call) {
    return this.#read("inspectSnapshot", { snapshotId }, call, () =>
      snapshotRecord(this.#world.find("snapshot", snapshotId)),
    );
  }

  async listSnapshots(request, call) {
    return this.#read("listSnapshots", request, call, () =>
      page([...this.#world.snapshots.values()], request, snapshotRecord),
    );
  }

  async deleteSnapshot({ snapshotId }, call) {
    return this.#mutate("deleteSnapshot", { snapshotId }, call, () => {
      const alreadyGone = !this.#world.snapshots.delete(snapshotId);
      return { alreadyGone };
    });
  }

  get volumes() {
    return {
      create: (request, call) =>
        this.#mutate("createVolume", request, call, () => {
          const volume = {
            id: this.#world.id("volume"),
            state: "ready",
            createdAtMs: Date.now(),
            files: new Map(),
            ...request,
          };
          this.#world.volumes.set(volume.id, volume);
          return volumeRecord(volume);
        }),
      inspect: ({ volumeId }, call) =>
        this.#read("inspectVolume", { volumeId }, call, () =>
          volumeRecord(this.#world.find("volume", volumeId)),
        ),
      list: (request, call) =>
        this.#read("listVolumes", request, call, () =>
          page([...this.#world.volumes.values()], request, volumeRecord),
        ),
      delete: ({ volumeId }, call) =>
        this.#mutate("deleteVolume", { volumeId }, call, () => ({
          alreadyGone: !this.#world.volumes.delete(volumeId),
        })),
      find: (request, call) =>
        this.#read("findVolumes", request, call, () =>
          find(this.#world.volumes, request, volumeRecord),
        ),
    };
  }

  async findSandboxes(request, call) {
    return this.#read("findSandboxes", request, call, () =>
      find(this.#world.sandboxes, request, sandboxRecord),
    );
  }

  async findSnapshots(request, call) {
    return this.#read("findSnapshots", request, call, () =>
      find(this.#world.snapshots, request, snapshotRecord),
    );
  }

  /** Where a path lies: in the sandbox's own files, or in a mounted volume's. */
  #place(sandboxId, path) {
    const sandbox = this.#world.find("sandbox", sandboxId);
    for (const mount of sandbox.mounts ?? []) {
      if (path !== mount.path && !path.startsWith(`${mount.path}/`)) continue;
      const volume = this.#world.find("volume", mount.volumeId);
      const inside = path.slice(mount.path.length);
      const key = mount.subpath === undefined ? inside : `/${mount.subpath}${inside}`;
      return { files: volume.files, key, readOnly: mount.readOnly };
    }
    return { files: sandbox.files, key: path, readOnly: false };
  }
}

function page(all, { limit, cursor }, toRecord) {
  const start = cursor === undefined ? 0 : Number(cursor);
  const end = start + limit;
  return {
    items: all.slice(start, end).map(toRecord),
    cursor: end < all.length ? String(end) : null,
    coverage: { complete: true },
  };
}

function find(all, { markers }, toRecord) {
  const matches = [...all.values()].filter(
    (each) =>
      each.markers?.operation === markers.operation &&
      each.markers?.submission === markers.submission,
  );
  return { matches: matches.map(toRecord), searched: { items: all.size, complete: true } };
}

function sandboxRecord(sandbox) {
  return {
    id: sandbox.id,
    state: sandbox.state,
    providerState: sandbox.state,
    createdAtMs: sandbox.createdAtMs,
    markers: sandbox.markers ?? null,
    reason: null,
    image: null,
    lifecycle: {
      lifetimeSeconds: sandbox.lifecycle?.lifetimeSeconds ?? null,
      idleSeconds: null,
    },
    network: { policy: sandbox.network ?? "blocked", policyId: null },
    differences: [],
    snapshotId: sandbox.snapshotId ?? null,
    labels: sandbox.labels ?? {},
    mounts: sandbox.mounts ?? [],
  };
}

function snapshotRecord(snapshot) {
  return {
    id: snapshot.id,
    state: snapshot.state,
    providerState: snapshot.state,
    createdAtMs: snapshot.createdAtMs,
    markers: snapshot.markers ?? null,
    sourceSandboxId: snapshot.sourceSandboxId,
    reason: snapshot.reason ?? null,
    sizeBytes: null,
    labels: snapshot.labels ?? {},
  };
}

function volumeRecord(volume) {
  return {
    id: volume.id,
    name: volume.name,
    state: volume.state,
    providerState: volume.state,
    createdAtMs: volume.createdAtMs,
    markers: volume.markers ?? null,
  };
}

/** What to spawn for argv or shell text. */
function command({ command: given }) {
  return typeof given === "string" ? ["/bin/sh", "-c", given] : given;
}

function run({ command: given, cwd, stdin, timeoutSeconds = 600, maxOutputBytes = 1048576 }, env) {
  const [file, ...args] = command({ command: given });
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd, env: { PATH: process.env.PATH, ...env } });
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutSeconds * 1000);
    const output = { stdout: [], stderr: [] };
    for (const name of ["stdout", "stderr"]) {
      child[name].on("data", (bytes) => output[name].push(bytes));
    }
    child.on("error", (error) => {
      clearTimeout(timer);
      if (error.code !== "ENOENT") return reject(error);
      resolve(result(127, output));
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve(result(code ?? 137, output));
    });
    child.stdin.on("error", () => {});
    child.stdin.end(stdin);
  });

  function result(exitCode, output) {
    const whole = { stdout: Buffer.concat(output.stdout), stderr: Buffer.concat(output.stderr) };
    return {
      exitCode,
      stdout: new Uint8Array(whole.stdout.subarray(0, maxOutputBytes)),
      stderr: new Uint8Array(whole.stderr.subarray(0, maxOutputBytes)),
      stdoutBytes: whole.stdout.length,
      stderrBytes: whole.stderr.length,
      stdoutTruncated: whole.stdout.length > maxOutputBytes,
      stderrTruncated: whole.stderr.length > maxOutputBytes,
      durationMs: performance.now() - started,
    };
  }
}

function withResolvers() {
  const result = {};
  result.promise = new Promise((resolve, reject) => Object.assign(result, { resolve, reject }));
  return result;
}
