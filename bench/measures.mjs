/**
 * The measurements, the same for every contender. Each checks what it timed,
 * after its clock has stopped, and throws when it is not right.
 */

import { setTimeout as sleep } from "node:timers/promises";

/** Up to this size a write of this package travels in its script. */
const SMALL_WRITE = 64 * 1024;

const LINE = "a line of output, as a build or a test prints it, 0123456789\n";

/** What the stub's outputs and files consist of (simulator/src/stub/payload.rs). */
export function payload(bytes) {
  return LINE.repeat(Math.ceil(bytes / LINE.length)).slice(0, bytes);
}

export const measures = {
  /** Small commands: `calls` of them, `inFlight` at a time. */
  exec: async (contender, { calls, inFlight }) => {
    const command = "runloop-stub stdout=6";
    const run = async (count) => {
      const times = [];
      const lane = async () => {
        for (let call = 0; call < count / inFlight; call += 1) {
          const start = performance.now();
          const { exitCode, stdout } = await contender.exec(command);
          times.push(performance.now() - start);
          if (exitCode !== 0 || stdout !== "a line") throw new Error("a wrong result");
        }
      };
      await Promise.all(Array.from({ length: inFlight }, lane));
      return times;
    };
    // Connections, compiled code, caches.
    await run(Math.max(inFlight, Math.min(1000, calls / 2)));
    const clock = start();
    const times = await run(calls);
    return { ...clock(), medianMs: median(times), calls: times.length };
  },

  /** Streamed text: `bytes` over `streams` at once, in events of `event` bytes. */
  stream: async (contender, { bytes, streams, event }) => {
    const each = Math.floor(bytes / streams);
    const one = async (length) => {
      const texts = [];
      const command = `runloop-stub stdout=${length} event=${event}`;
      await contender.stream(command, (text) => texts.push(text));
      return texts;
    };
    await one(event);
    const clock = start();
    const all = await Promise.all(Array.from({ length: streams }, () => one(each)));
    const figures = clock();
    const expected = payload(each);
    for (const texts of all) if (texts.join("") !== expected) throw new Error("wrong text");
    return figures;
  },

  /** A file of `bytes` read into memory. */
  read: async (contender, { bytes }) => {
    await contender.read("/runloop-stub/1000");
    global.gc?.();
    const memory = peakMemory();
    const clock = start();
    const content = await contender.read(`/runloop-stub/${bytes}`);
    const figures = { ...clock(), extraBytes: memory(), blockMs: clock.block() };
    if (!Buffer.from(payload(bytes)).equals(content)) throw new Error("wrong bytes");
    return { ...figures, idleMs: await idleBlock(figures.seconds) };
  },

  /** `bytes` in memory written to a file. */
  write: async (contender, { bytes, plainUrl }) => {
    await contender.write("/srv/small", Buffer.from("a"));
    const content = Buffer.from(payload(bytes));
    global.gc?.();
    const memory = peakMemory();
    const clock = start();
    await contender.write("/srv/file", content);
    const figures = { ...clock(), extraBytes: memory(), blockMs: clock.block() };
    await checkWritten(plainUrl, bytes);
    return { ...figures, idleMs: await idleBlock(figures.seconds) };
  },

  /** `calls` files of `bytes` read, one after the other. */
  reads: async (contender, { bytes, calls }) => {
    const expected = Buffer.from(payload(bytes));
    const read = () => contender.read(`/runloop-stub/${bytes}`);
    for (let call = 0; call < Math.min(calls, 20); call += 1) {
      if (!expected.equals(await read())) throw new Error("wrong bytes");
    }
    const clock = start();
    let received = 0;
    for (let call = 0; call < calls; call += 1) received += (await read()).length;
    const figures = clock();
    if (received !== bytes * calls) throw new Error("wrong lengths");
    return figures;
  },

  /** `calls` files of `bytes` written, one after the other. */
  writes: async (contender, { bytes, calls, plainUrl }) => {
    const content = Buffer.from(payload(bytes));
    const write = () => contender.write("/srv/file", content);
    for (let call = 0; call < Math.min(calls, 20); call += 1) await write();
    const clock = start();
    for (let call = 0; call < calls; call += 1) await write();
    const figures = clock();
    await checkWritten(plainUrl, bytes);
    return figures;
  },

  /**
   * The round trips and the time of one command that prints `bytes`, from the real simulator: the
   * service gives the last lines of an output only, of which the stub knows nothing.
   */
  output: async (contender, { bytes, plainUrl }) => {
    await contender.exec("true");
    const before = await requests(plainUrl);
    const clock = start();
    const { stdout } = await contender.exec(`yes '${LINE.trim()}' | head -c ${bytes}`);
    const figures = clock();
    const roundTrips = (await requests(plainUrl)) - before;
    return { ...figures, roundTrips, exact: stdout === payload(bytes) };
  },

  /** `calls` commands that wait at once, and one read among them. */
  waiting: async (contender, { calls, plainUrl }) => {
    await Promise.all(Array.from({ length: 64 }, () => contender.exec("runloop-stub stdout=6")));
    await contender.read("/runloop-stub/1000");
    global.gc?.();
    const memory = peakMemory();
    const { held } = await report(plainUrl);
    const command = "runloop-stub release=1 stdout=6";
    const all = Array.from({ length: calls }, () => contender.exec(command));
    // A failure shows where all are awaited.
    for (const call of all) call.catch(() => {});
    const end = performance.now() + 60_000;
    let waiting = 0;
    while (waiting < calls && performance.now() < end) {
      await sleep(50);
      waiting = (await report(plainUrl)).held - held;
    }
    const reads = [];
    for (let read = 0; read < 9; read += 1) {
      const asked = performance.now();
      await contender.read("/runloop-stub/1000");
      reads.push(performance.now() - asked);
    }
    const extraBytes = memory();
    await fetch(`${plainUrl}/_simulator/stub/release`, { method: "POST" });
    const released = performance.now();
    for (const { stdout } of await Promise.all(all)) {
      if (stdout !== "a line") throw new Error("a wrong result");
    }
    const seconds = (performance.now() - released) / 1000;
    return { seconds, cpuSeconds: 0, extraBytes, waiting, readMs: median(reads) };
  },

  /** Cost of a small command beside `handles` live sandboxes. */
  handles: async (contender, { handles, calls }) => {
    const live = [];
    while (live.length < handles) {
      const batch = Math.min(64, handles - live.length);
      const create = () => contender.client.sandboxes.create();
      live.push(...(await Promise.all(Array.from({ length: batch }, create))));
    }
    const figures = await measures.exec(contender, { calls, inFlight: 64 });
    return { ...figures, handles: live.length };
  },

  /** The longest block of the event loop while `bytes` a second stream through for a second. */
  paced: async (contender, { bytes }) => {
    const texts = [];
    await contender.stream("runloop-stub stdout=1000", () => {});
    const clock = start();
    const command = `runloop-stub stdout=${bytes} event=1024 rate=${bytes}`;
    await contender.stream(command, (text) => texts.push(text));
    const figures = { ...clock(), blockMs: clock.block() };
    if (texts.join("") !== payload(bytes)) throw new Error("wrong text");
    return { ...figures, idleMs: await idleBlock(figures.seconds) };
  },
};

/** Starts a clock; calling it gives the time and CPU since, its `block` the longest turn. */
function start() {
  let longest = 0;
  let last = performance.now();
  const tick = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 1);
    last = now;
  }, 1);
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const clock = () => {
    const seconds = (performance.now() - begin) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    clearInterval(tick);
    return { seconds, cpuSeconds: (user + system) / 1e6 };
  };
  clock.block = () => Math.max(longest, performance.now() - last - 1);
  return clock;
}

/** The longest turn of a loop that does nothing for as long: what the machine alone does. */
async function idleBlock(seconds) {
  const clock = start();
  await sleep(Math.min(2, Math.max(0.3, seconds)) * 1000);
  clock();
  return clock.block();
}

async function checkWritten(plainUrl, bytes) {
  const { last_write } = await report(plainUrl);
  // The wrapper of a small file carries it in its text, of which the stub knows nothing.
  if (bytes > SMALL_WRITE && !(last_write.is_payload && last_write.bytes === bytes)) {
    throw new Error("wrong bytes");
  }
}

/** The highest memory of the process from here on; asks every few milliseconds. */
function peakMemory() {
  const before = process.memoryUsage.rss();
  let peak = before;
  const look = () => {
    peak = Math.max(peak, process.memoryUsage.rss());
  };
  const timer = setInterval(look, 5);
  return () => {
    clearInterval(timer);
    look();
    return peak - before;
  };
}

/** How many requests of the API a simulator has had. */
async function requests(url) {
  const { entries } = await (await fetch(`${url}/_simulator/journal`)).json();
  return entries.length;
}

async function report(url) {
  return (await fetch(`${url}/_simulator/stub`)).json();
}

export function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}
