/** What is measured: each row with its contenders, its job and what its figures mean. */

import { cpus } from "node:os";

const MIB = 1024 * 1024;

/** How a contender is started: which of `contenders.mjs`, on what, by which protocol. */
export const starts = {
  ours: { label: "this package, Node" },
  "ours-h2": { label: "this package, Node, TLS and HTTP/2", contender: "ours", tls: true },
  "ours-bun": { label: "this package, Bun", contender: "ours", runtime: "bun" },
  sdk: { label: "official SDK, HTTP/1.1" },
  "sdk-h2": { label: "official SDK, its default: TLS and HTTP/2", tls: true },
  computesdk: { label: "@computesdk/runloop, TLS and HTTP/2", tls: true },
  fetch: { label: "fetch by hand, Node" },
  "fetch-bun": { label: "fetch by hand, Bun", contender: "fetch", runtime: "bun" },
  undici: { label: "undici.request by hand" },
  floor: { label: "bare reqwest loop, Rust", runtime: "floor" },
  // What the length of a wrapped command costs by itself: the same loop with 2.6 kB more to send.
  "floor-long": {
    label: "bare reqwest loop, requests as long as ours",
    runtime: "floor",
    job: { padding: 2600 },
  },
};

/** The official SDK over the protocol of this contender: what its figures are held against. */
export function sdkLike(name) {
  return starts[name].tls ? "sdk-h2" : "sdk";
}

const everyone = Object.keys(starts);
const plain = everyone.filter((name) => name !== "computesdk" && name !== "floor-long");

const perCall = {
  "µs of CPU a call": ({ cpuSeconds, calls }) => (cpuSeconds / calls) * 1e6,
  "calls a second": ({ seconds, calls }) => calls / seconds,
  "median ms": ({ medianMs }) => medianMs,
};
const perMegabyte = {
  "MB/s": ({ seconds }, { bytes }) => bytes / 1e6 / seconds,
  "ms of CPU a MB": ({ cpuSeconds }, { bytes }) => (cpuSeconds * 1000) / (bytes / 1e6),
};
const block = {
  "longest block, ms": ({ blockMs }) => blockMs,
  "of an idle loop, ms": ({ idleMs }) => idleMs,
};
const file = {
  ms: ({ seconds }) => seconds * 1000,
  "ms of CPU": ({ cpuSeconds }) => cpuSeconds * 1000,
  "extra memory, times the payload": ({ extraBytes }, { bytes }) => extraBytes / bytes,
  ...block,
};
/** For payloads of any size: so many calls one after the other. */
const perPayload = {
  "ms a call": ({ seconds }, { calls }) => (seconds / calls) * 1000,
  "ms of CPU a call": ({ cpuSeconds }, { calls }) => (cpuSeconds / calls) * 1000,
  "ms of CPU a MB": ({ cpuSeconds }, { bytes, calls }) => (cpuSeconds * 1e9) / (bytes * calls),
};

function exec(inFlight, calls) {
  return {
    id: `exec-${inFlight}`,
    title: `Small commands, ${inFlight} in flight`,
    who: everyone,
    job: { measure: "exec", inFlight, calls },
    show: perCall,
  };
}

function stream(streams, bytes) {
  return {
    id: `stream-${streams}`,
    title: `Streamed text, ${streams} at once, ${bytes / 1e6} MB in events of 1 KB`,
    who: plain,
    job: { measure: "stream", streams, bytes, event: 1024 },
    show: perMegabyte,
  };
}

/** Growth, this package alone: rows that the report joins into one table. */
function growth(group, measure, field, jobs, show) {
  return jobs.map((job) => ({
    id: `growth-${measure}-${job[field]}`,
    group,
    size: job[field].toLocaleString("en"),
    title: `${group}: ${job[field].toLocaleString("en")}`,
    who: ["ours"],
    job: { measure, ...job },
    show,
  }));
}

const LIVE = [1, 10, 100, 1000, 10_000].map((handles) => ({ handles, calls: 6400 }));
const PAYLOADS = [
  [1024, 200],
  [32 * 1024, 200],
  [MIB, 32],
  [8 * MIB, 8],
  [64 * MIB, 3],
].map(([bytes, calls]) => ({ bytes, calls }));

export const rows = [
  exec(1, 1000),
  exec(64, 3200),
  exec(512, 5120),
  exec(4096, 8192),
  stream(1, 30e6),
  stream(200, 30e6),
  {
    id: "read",
    title: "64 MiB read",
    who: plain,
    job: { measure: "read", bytes: 64 * MIB },
    show: file,
  },
  {
    id: "write",
    title: "64 MiB written",
    who: plain,
    job: { measure: "write", bytes: 64 * MIB },
    show: file,
  },
  {
    id: "output",
    title: "One command that prints 1 MiB",
    who: everyone.filter((name) => starts[name].runtime !== "floor"),
    job: { measure: "output", bytes: MIB },
    isWhole: true,
    show: {
      "round trips": ({ roundTrips }) => roundTrips,
      "exact bytes (1 is yes)": ({ exact }) => Number(exact),
      ms: ({ seconds }) => seconds * 1000,
    },
  },
  {
    id: "waiting",
    title: "10,000 commands that wait at once",
    who: ["ours", "ours-h2"],
    job: { measure: "waiting", calls: 10_000 },
    show: {
      "at the service": ({ waiting }) => waiting,
      "extra memory, MB": ({ extraBytes }) => extraBytes / 1e6,
      "a read among them, ms": ({ readMs }) => readMs,
      "all done after the release, s": ({ seconds }) => seconds,
    },
  },
  {
    id: "paced",
    title: "100 MB/s of text for a second",
    who: ["ours", "sdk"],
    job: { measure: "paced", bytes: 100e6 },
    show: { seconds: ({ seconds }) => seconds, ...block },
  },
  ...growth("Small commands beside so many live sandboxes", "handles", "handles", LIVE, perCall),
  ...growth("Files read, bytes each", "reads", "bytes", PAYLOADS, perPayload),
  ...growth("Files written, bytes each", "writes", "bytes", PAYLOADS, perPayload),
];

/** The first row of each measurement, with next to nothing to do. */
export function quick(all) {
  const most = { calls: 64, inFlight: 16, streams: 4, bytes: 200_000, handles: 5 };
  const first = (row) => all.find((other) => other.job.measure === row.job.measure) === row;
  return all.filter(first).map((row) => {
    const job = { ...row.job };
    for (const [field, value] of Object.entries(most)) {
      if (field in job) job[field] = Math.min(job[field], value);
    }
    return { ...row, job };
  });
}

/** What the figures were taken on. */
export function machine() {
  return { processor: cpus()[0]?.model ?? "unknown", cores: cpus().length };
}
