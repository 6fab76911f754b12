/** One thread of work on one sandbox at a time, with a model of what must be true of it. */

import { isBeachsideError } from "@beachside/runloop";
import { pick, weighted } from "./faults.mjs";

/** Codes that no fault of the service can justify. */
const OURS = ["INVALID_ARGUMENT", "UNSUPPORTED", "INTERNAL", "SCOPE_MISMATCH", "UNAUTHENTICATED"];

/** Longest that one call may take: its own waits, and what was held back from it. */
const LONGEST_MS = 90_000;

/** Steps after which a sandbox is given up for a new one. */
const STEPS = 24;

const HOME = "/home/user";

export class Lane {
  #clients;
  #client;
  #reference;
  #handle;
  #handleOf;
  #files = new Map();
  #steps = 0;
  #failures = 0;
  #next;
  #log;
  #name;

  constructor(name, clients, next, log) {
    this.#name = name;
    this.#clients = clients;
    this.#next = next;
    this.#log = log;
  }

  async step() {
    this.#client = this.#clients.any(this.#next);
    if (this.#reference === undefined) return this.#create();
    this.#steps += 1;
    if (this.#steps > STEPS || this.#failures > 6) return this.#destroy();
    const box = await this.#open();
    if (box === undefined) return;
    const action = weighted(this.#next, [
      [30, this.#exec],
      [8, this.#execMany],
      [8, this.#stdin],
      [6, this.#large],
      [3, this.#overdue],
      [14, this.#write],
      [12, this.#readFile],
      [8, this.#stream],
      [5, this.#terminate],
      [5, this.#power],
      [6, this.#snapshot],
      [4, this.#look],
    ]);
    await action.call(this, box);
  }

  /** The sandbox through the client at hand. */
  async #open() {
    if (this.#handleOf !== this.#client) {
      const { value } = await this.#read("get", () => this.#client.sandboxes.get(this.#reference));
      if (value === undefined) return undefined;
      if (value.reference.ownership.state !== "created") {
        this.#log.violation("a reopened sandbox of ours is not known as ours");
      }
      this.#handle = value;
      this.#handleOf = this.#client;
    }
    return this.#handle;
  }

  /** Runs a mutation; it is cancelled at a random moment now and then. */
  async #mutate(kind, send, { cancellable = true } = {}) {
    let saved;
    const options = {
      onSubmit: (reference) => {
        saved = reference;
        this.#log.write("op", { reference });
      },
    };
    if (cancellable && this.#next() < 0.1) {
      options.signal = AbortSignal.timeout(Math.floor(this.#next() * 300));
    }
    try {
      const value = await this.#bounded(kind, send(options));
      this.#log.write("end", { id: saved?.operationId, kind, code: "success" });
      this.#failures = 0;
      return { value, saved };
    } catch (error) {
      this.#failures += 1;
      this.#judge(kind, error);
      const { submitted, killed, leftovers, sandbox, snapshot } = error.outcome ?? {};
      this.#log.write("end", {
        id: saved?.operationId,
        kind,
        code: error.code,
        ...{ submitted, killed, leftovers },
        sandbox: sandbox?.id,
        snapshot: snapshot?.id,
      });
      if (saved !== undefined && error.outcome?.operation?.operationId !== saved.operationId) {
        this.#log.violation(`${kind}: ${error.code} without its operation`);
      }
      return { error, saved };
    }
  }

  async #read(kind, ask) {
    try {
      return { value: await this.#bounded(kind, ask()) };
    } catch (error) {
      this.#failures += 1;
      this.#judge(kind, error);
      this.#log.write("end", { kind, code: error.code });
      return { error };
    }
  }

  #judge(kind, error) {
    if (!isBeachsideError(error) || OURS.includes(error.code)) {
      this.#log.violation(`${kind}: ${error?.code ?? ""} ${error?.stack ?? error}`);
    }
  }

  async #bounded(kind, promise) {
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, LONGEST_MS);
    });
    const first = await Promise.race([promise.then(() => "done"), late.then(() => "late")]);
    clearTimeout(timer);
    if (first === "late") this.#log.violation(`${kind}: no end after ${LONGEST_MS} ms`);
    return promise;
  }

  #expect(what, holds) {
    if (!holds) this.#log.violation(`${this.#name}: ${what}`);
  }

  async #create() {
    const { value, saved, error } = await this.#mutate("create", (options) =>
      this.#client.sandboxes.create(options),
    );
    let box = value;
    if (error !== undefined && saved !== undefined) {
      const found = await this.#read("recover", () => this.#client.recover(saved));
      box = found.value?.status === "done" ? found.value.sandbox : undefined;
      if (found.value?.state === "destroyed") box = undefined;
    }
    if (box === undefined) return;
    this.#reference = box.reference;
    this.#handle = box;
    this.#handleOf = this.#client;
    this.#files.clear();
    this.#steps = 0;
    this.#failures = 0;
  }

  async #destroy() {
    const box = await this.#open();
    // One in four is left for the end, where its insides are looked at.
    if (box !== undefined && this.#next() < 0.75) {
      await this.#mutate("destroy", (options) => box.destroy(options));
    }
    this.#reference = undefined;
  }

  #token() {
    return `${this.#name}-${crypto.randomUUID()}`;
  }

  /** A command that leaves its token, so that a second run of it would show. */
  async #command(box, work, options, expected) {
    const token = this.#token();
    this.#log.write("run", { box: box.reference.id, token });
    const command = `echo ${token} >> ${HOME}/ran; ${work}`;
    const { value, error } = await this.#mutate("exec", (more) =>
      box.exec(command, { timeoutSeconds: 20, ...options, ...more }),
    );
    if (value !== undefined) {
      this.#log.write("ran", { box: box.reference.id, token });
      this.#expect(`exec: ${work} gave other bytes`, expected(value));
    }
    return error;
  }

  async #exec(box) {
    const code = Math.floor(this.#next() * 256);
    const text = this.#token();
    await this.#command(box, `echo ${text}; echo err ${text} >&2; exit ${code}`, {}, (result) => {
      const isRight =
        result.stdoutText() === `${text}\n` && result.stderrText() === `err ${text}\n`;
      return isRight && result.exitCode === code;
    });
  }

  async #execMany(box) {
    await Promise.all([this.#exec(box), this.#exec(box), this.#exec(box)]);
  }

  async #stdin(box) {
    const input = Buffer.alloc(Math.floor(this.#next() * 40_000), this.#token());
    await this.#command(box, "cat", { stdin: input }, ({ stdout }) => input.equals(stdout));
  }

  async #large(box) {
    const lines = 8_000 + Math.floor(this.#next() * 20_000);
    const expected = Array.from({ length: lines }, (_, line) => `${line + 1}\n`).join("");
    await this.#command(box, `seq ${lines}`, {}, (result) => result.stdoutText() === expected);
  }

  async #overdue(box) {
    const { value } = await this.#mutate("exec", (options) =>
      box.exec("exec sleep 61", { ...options, timeoutSeconds: 0.3 }),
    );
    this.#expect(`a command past its deadline ended with ${value?.exitCode}`, value === undefined);
  }

  async #write(box) {
    const path = `${HOME}/file-${Math.floor(this.#next() * 3)}`;
    const size = this.#next() < 0.2 ? 200_000 : 500;
    const content = `${this.#token()} ${"x".repeat(Math.floor(this.#next() * size))}`;
    const mark = {
      box: box.reference.id,
      path,
      token: content.split(" ")[0],
      length: content.length,
    };
    this.#log.write("may", mark);
    const { value, error } = await this.#mutate("write", (options) =>
      box.writeFile(path, content, { overwrite: true, ...options }).then(() => true),
    );
    const possible = this.#files.get(path) ?? new Set([undefined]);
    if (value) {
      this.#log.write("is", mark);
      this.#files.set(path, new Set([content]));
    } else if (error.outcome?.submitted !== false) {
      this.#files.set(path, new Set([...possible, content]));
    }
  }

  async #holds(box, path, possible, what) {
    const { value, error } = await this.#read("read", () => box.readTextFile(path));
    const isMissing = error?.code === "NOT_FOUND" && error.resource?.kind === "file";
    if (error !== undefined && !isMissing) return;
    this.#expect(`${what}: ${path} holds something else`, possible.has(value));
  }

  async #readFile(box) {
    const path = `${HOME}/file-${Math.floor(this.#next() * 3)}`;
    await this.#holds(box, path, this.#files.get(path) ?? new Set([undefined]), "read");
  }

  async #stream(box) {
    const lines = 20 + Math.floor(this.#next() * 400);
    const token = this.#token();
    this.#log.write("run", { box: box.reference.id, token });
    const command = `echo ${token} >> ${HOME}/ran; seq ${lines}; exit 3`;
    const started = await this.#mutate("start", (options) =>
      box.processes.start({ command, ...options }),
    );
    if (started.value === undefined) return;
    this.#log.write("ran", { box: box.reference.id, token, isStarted: true });
    const process = started.value;
    const [text, exit] = await Promise.all([
      this.#read("stream", () => process.stdout.text()),
      this.#read("wait", () => process.wait()),
    ]);
    if (text.value !== undefined && exit.value !== undefined) {
      const expected = Array.from({ length: lines }, (_, line) => `${line + 1}\n`).join("");
      this.#expect(`a process ended with ${exit.value.exitCode}`, exit.value.exitCode === 3);
      if (exit.value.output === "complete") {
        const { length } = text.value;
        const shown = `${length} of ${expected.length}, ending in ${JSON.stringify(text.value.slice(-8))}`;
        this.#expect(`a complete stream has other text: ${shown}`, text.value === expected);
      } else {
        this.#expect("an incomplete stream has other text", expected.includes(text.value));
      }
    }
    await process.detach();
  }

  async #terminate(box) {
    const started = await this.#mutate("start", (options) =>
      box.processes.start({ command: "exec sleep 62", ...options }),
    );
    if (started.value === undefined) return;
    const ended = await this.#mutate("terminate", (options) => started.value.terminate(options));
    if (ended.value !== undefined) {
      this.#expect("a terminated process ended well", ended.value.exitCode !== 0);
    }
    await started.value.detach();
  }

  async #power(box) {
    const { error } = await this.#mutate("suspend", (options) => box.suspend(options));
    // However it went, it must come back.
    for (let attempt = 0; attempt < 5; attempt++) {
      const { value } = await this.#mutate("resume", (options) => box.resume(options));
      if (value !== undefined) break;
    }
    if (error === undefined) await this.#readFile(box);
  }

  async #snapshot(box) {
    const captured = await this.#mutate("snapshot", (options) => box.snapshot(options));
    const snapshot = captured.value?.snapshot;
    if (snapshot === undefined) return;
    const restored = await this.#mutate("restore", (options) => snapshot.restore(options));
    if (restored.value !== undefined) {
      for (const [path, possible] of this.#files) {
        await this.#holds(restored.value, path, possible, "restored");
      }
      await this.#mutate("destroy", (options) => restored.value.destroy(options));
    }
    if (this.#next() < 0.8) await this.#mutate("delete", (options) => snapshot.delete(options));
  }

  async #look(box) {
    await pick(this.#next, [
      () => this.#read("inspect", () => box.inspect()),
      () => this.#read("list", () => Promise.resolve(this.#client.sandboxes.list({ limit: 5 }))),
      () =>
        this.#read("snapshots", () => Promise.resolve(this.#client.snapshots.list({ limit: 5 }))),
    ])();
  }
}
