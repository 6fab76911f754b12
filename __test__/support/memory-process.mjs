/** A live process of the in-memory provider: a test writes its output and ends it, or a child does. */

import { spawn } from "node:child_process";
import { abortable } from "./memory-world.mjs";

export class MemoryProcess {
  /** Every piece written so far: `{ stream, text }`. */
  written = [];
  exit = null;
  readers = new Set();

  constructor(world, id) {
    this.world = world;
    this.id = id;
  }

  /** Lets a child process of this machine be it. */
  run([file, ...args], env) {
    const child = spawn(file, args, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.kill = () => child.kill("SIGKILL");
    for (const stream of ["stdout", "stderr"]) {
      child[stream].setEncoding("utf8").on("data", (text) => this.write(stream, text));
    }
    child.once("error", () => this.end(127));
    child.once("close", (code) => this.end(code ?? 137));
  }

  /** Writes output, as the command would. */
  write(stream, text) {
    this.written.push({ stream, text });
    this.#pump();
  }

  end(exitCode, output = "complete") {
    this.exit ??= { exitCode, output };
    this.#pump();
    this.world.changed();
  }

  /** What a connection holds of it. */
  view(stdoutOffset = 0, stderrOffset = 0) {
    const seen = { stdout: stdoutOffset, stderr: stderrOffset };
    const own = new Set();
    const start = { stdout: stdoutOffset, stderr: stderrOffset };
    return {
      id: this.id,
      read: (which) => {
        const reader = new MemoryReader(this, which, { ...start }, seen);
        own.add(reader);
        this.readers.add(reader);
        reader.pump();
        return reader;
      },
      wait: (call) =>
        abortable(
          this.world.until(() => this.exit !== null).then(() => this.exit),
          call?.signal,
        ),
      status: async () => ({
        state: this.exit === null ? "running" : "exited",
        exitCode: this.exit?.exitCode ?? null,
      }),
      kill: (call) =>
        this.world.run("kill", { processId: this.id }, async () => {
          this.kill?.();
          setImmediate(() => this.end(137));
          return abortable(Promise.resolve(), call?.signal);
        }),
      terminate: (call) =>
        this.world.run("terminate", { processId: this.id }, async () => {
          this.kill?.();
          this.end(137);
          return abortable(Promise.resolve(this.exit), call?.signal);
        }),
      detach: () => {
        for (const reader of own) reader.cancel();
      },
      offsets: () => ({ ...seen }),
    };
  }

  #pump() {
    for (const reader of this.readers) reader.pump();
  }
}

class MemoryReader {
  #process;
  #which;
  #skip;
  #seen;
  #next = 0;
  #waiters = [];
  #cancelled = false;

  constructor(process, which, skip, seen) {
    this.#process = process;
    this.#which = which;
    this.#skip = skip;
    this.#seen = seen;
  }

  nextBatch() {
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
      this.pump();
    });
  }

  cancel() {
    this.#cancelled = true;
    this.#process.readers.delete(this);
    for (const resolve of this.#waiters.splice(0)) resolve(null);
  }

  pump() {
    while (this.#waiters.length > 0) {
      const pieces = this.#take();
      if (pieces.length > 0) this.#waiters.shift()(pieces);
      else if (this.#process.exit !== null || this.#cancelled) this.#waiters.shift()(null);
      else return;
    }
  }

  #take() {
    const pieces = [];
    for (; this.#next < this.#process.written.length; this.#next++) {
      const { stream, text } = this.#process.written[this.#next];
      if (this.#which !== "output" && this.#which !== stream) continue;
      const cut = Math.min(this.#skip[stream], text.length);
      this.#skip[stream] -= cut;
      this.#seen[stream] += text.length - cut;
      if (cut < text.length) pieces.push({ stream, text: text.slice(cut) });
    }
    return pieces;
  }
}
