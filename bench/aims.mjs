/** The aims, each with what a run found. What was not measured counts as not met. */

import { of, round } from "./figures.mjs";
import { rows, sdkLike, starts } from "./rows.mjs";

const CPU = "µs of CPU a call";
const RATE = "calls a second";
const IN_FLIGHT = [64, 512, 4096];

/** `[{ aim, found, isMet }]` for the figures of a run. */
export function aims({ results, imports, installed }) {
  const value = (id, who, name) => {
    const row = rows.find((each) => each.id === id);
    return of(row, results[id]?.[who], name);
  };
  /** A contender's figure over another's. */
  const ratio = (id, who, other, name) => value(id, who, name) / value(id, other, name);
  /** Ours over the SDK's, over both protocols. */
  const sdk = (id, name) => ["ours", "ours-h2"].map((who) => ratio(id, who, sdkLike(who), name));
  const most = (aim, limit, values, unit = "") => line(aim, values, unit, (each) => each <= limit);
  const least = (aim, limit, values) => line(aim, values, "", (each) => each >= limit);
  const flights = (each) => IN_FLIGHT.flatMap((inFlight) => each(`exec-${inFlight}`));
  const exact = Object.keys(starts).filter(
    (who) => value("output", who, "exact bytes (1 is yes)") === 1,
  );
  const trips = (who) => value("output", who, "round trips");
  const others = exact.filter((who) => !who.startsWith("ours"));
  const block = "longest block, ms";
  const memory = "extra memory, times the payload";
  return [
    most(
      "CPU of a small command, of the SDK's, one in flight: at most 1/5",
      1 / 5,
      sdk("exec-1", CPU),
    ),
    most(
      "the same with 64, 512 and 4,096 in flight: at most 1/8",
      1 / 8,
      flights((id) => sdk(id, CPU)),
    ),
    most(
      "CPU of a small command, of the bare loop's, with 1, 64, 512 and 4,096 in flight: at most 1.5",
      1.5,
      ["exec-1", ...flights((id) => [id])].map((id) => ratio(id, "ours", "floor", CPU)),
    ),
    least(
      "small commands a second, of the SDK's, with 64, 512 and 4,096 in flight: at least 12",
      12,
      flights((id) => sdk(id, RATE)),
    ),
    most("median latency of one in flight, of `undici.request`'s: at most 1", 1, [
      ratio("exec-1", "ours", "undici", "median ms"),
    ]),
    least("on Bun, calls a second of its own fetch's, 64 in flight: at least 1", 1, [
      ratio("exec-64", "ours-bun", "fetch-bun", RATE),
    ]),
    ...["stream-1", "stream-200"].flatMap((id) => [
      least(`${id}: MB/s, of the SDK's: at least 10`, 10, sdk(id, "MB/s")),
      most(`${id}: CPU a MB, of the SDK's: at most 1/10`, 0.1, sdk(id, "ms of CPU a MB")),
    ]),
    ...["read", "write"].flatMap((id) => [
      most(`64 MiB ${id}: extra memory, times the payload: at most 1.1`, 1.1, [
        value(id, "ours", memory),
        value(id, "ours-h2", memory),
      ]),
      most(`64 MiB ${id}: time, of the bare loop's: at most 1.2`, 1.2, [
        ratio(id, "ours", "floor", "ms"),
      ]),
    ]),
    {
      aim: "1 MiB of output: fewer round trips than any contender that gives exact bytes",
      found: exact.map((who) => `${starts[who].label}: ${round(trips(who))}`).join("; "),
      isMet: exact.includes("ours") && others.every((who) => trips("ours") < trips(who)),
    },
    most("import: at most 10 ms of CPU over bare Node", 10, [imports.ours.cpuMs], " ms"),
    most("import: at most 6 MB over bare Node", 6, [imports.ours.megabytes], " MB"),
    most(
      "10,000 waiting commands: under 150 MB",
      150,
      [value("waiting", "ours", "extra memory, MB")],
      " MB",
    ),
    most(
      "a read among them: under 50 ms",
      50,
      [value("waiting", "ours", "a read among them, ms")],
      " ms",
    ),
    most("installed: a main and a platform package", 2, [installed.ours.packages]),
    most("the addon: under 6 MB", 5_999_999, [installed.ours.addonBytes], " bytes"),
    most(
      "event loop: no block over 5 ms while 64 MiB are read or 100 MB/s pass through",
      5,
      [value("read", "ours", block), value("paced", "ours", block)],
      " ms",
    ),
    most(
      "64 MiB written: the one copy at entry, at most 40 ms",
      40,
      [value("write", "ours", block)],
      " ms",
    ),
  ];
}

function line(aim, values, unit, holds) {
  const found = values.map((each) => `${round(each)}${Number.isFinite(each) ? unit : ""}`);
  return { aim, found: found.join("; "), isMet: values.every(holds) };
}
