/** Tables of medians and ratios, the plot, and the raw figures as JSON. */

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { arch, platform, release } from "node:os";
import { fileURLToPath } from "node:url";
import { aims } from "./aims.mjs";
import { of, round } from "./figures.mjs";
import { machine, sdkLike, starts } from "./rows.mjs";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Writes RESULTS.md, results.json and cpu.svg from the rows that are done. */
export function write(rows, results, { rounds, minutes, failures, imports, installed }) {
  const facts = versions();
  const figures = { results, imports, installed };
  const text = `# Benchmark results

Written by \`make bench\` on ${facts.date}; do not edit. Medians of ${rounds} rounds in turn, ${minutes.toFixed(0)} minutes in all; "of the
SDK's" is the ratio to the official SDK over the same protocol, "of the loop's" to a bare reqwest loop in Rust. One server process on
the same machine takes its share of the cores. How it is measured: \`bench/bench.mjs\`; what follows from it:
\`docs/design/performance.md\`.

${facts.machine}; ${facts.versions}.

${aimsTable(figures)}
![CPU of a small command by commands in flight](cpu.svg)

${packageTable(imports, installed)}
${tables(rows, results)}${failed(failures)}`;
  writeFileSync(here("RESULTS.md"), text);
  const all = { ...facts, rounds, minutes, failures, imports, installed, rows: raw(rows, results) };
  writeFileSync(here("results.json"), `${JSON.stringify(all, null, 2)}\n`);
  writeFileSync(here("cpu.svg"), plot(rows, results));
}

function raw(rows, results) {
  return rows.map(({ id, title, job }) => ({ id, title, job, rounds: results[id] }));
}

/** Rows of one group are the lines of one table. */
function tables(rows, results) {
  const groups = new Map();
  for (const row of rows) {
    const key = row.group ?? row.id;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()].map((group) => table(group, results)).join("\n");
}

/** One table: of one row and its contenders, or of a group of rows. */
export function table(rows, results) {
  const [first] = rows;
  const names = Object.keys(first.show);
  const measured = results[first.id];
  const hasSdk = rows.length === 1 && "sdk" in measured && "sdk-h2" in measured;
  const hasLoop = rows.length === 1 && "floor" in measured;
  const head = names.flatMap((name) => [
    name,
    ...(hasSdk ? ["of the SDK's"] : []),
    ...(hasLoop ? ["of the loop's"] : []),
  ]);
  const cells = (row, who) =>
    names.flatMap((name) => {
      const value = of(row, results[row.id][who], name);
      const ratio = (other) => round(value / of(row, results[row.id][other], name));
      return [
        round(value),
        ...(hasSdk ? [ratio(sdkLike(who))] : []),
        ...(hasLoop ? [ratio("floor")] : []),
      ];
    });
  const lines = rows.flatMap((row) =>
    row.who.map((who) => `| ${row.size ?? starts[who].label} | ${cells(row, who).join(" | ")} |`),
  );
  const rule = `| --- |${" --- |".repeat(head.length)}`;
  return `## ${first.group ?? first.title}\n\n| | ${head.join(" | ")} |\n${rule}\n${lines.join("\n")}\n`;
}

function aimsTable(figures) {
  const lines = aims(figures).map(
    ({ aim, found, isMet }) => `| ${aim} | ${found} | ${verdict(found, isMet)} |`,
  );
  return `## Aims\n\n| Aim | Found | |\n| --- | --- | --- |\n${lines.join("\n")}\n`;
}

function verdict(found, isMet) {
  if (found === "" || found.includes("–")) return "not measured";
  return isMet ? "met" : "not met";
}

function failed(failures) {
  if (failures.length === 0) return "";
  const lines = failures.map(({ row, name, reason }) => {
    const [line] = reason.replace(`${row}, ${name}: `, "").split("\n", 1);
    return `- ${row}, ${starts[name].label}: ${line}`;
  });
  return `\n## What failed\n\n${lines.join("\n")}\n`;
}

export function packageTable(imports, installed) {
  const line = (label, name) => {
    const { packages, bytes } = installed[name];
    const { ms, cpuMs, megabytes } = imports[name];
    const cells = [round(ms), round(cpuMs), round(megabytes), packages, round(bytes / 1e6)];
    return `| ${label} | ${cells.join(" | ")} |`;
  };
  return `## The package

| | import, ms over bare Node | ms of CPU | MB over bare Node | packages installed | MB installed |
| --- | --- | --- | --- | --- | --- |
${line("this package (the addon loads with the first connect)", "ours")}
${line("official SDK", "sdk")}

The addon alone is ${installed.ours.addonBytes.toLocaleString("en")} bytes.
`;
}

function versions() {
  const { devDependencies } = JSON.parse(readFileSync(here("../package.json")));
  const rustc = execFileSync("rustc", ["--version"], { encoding: "utf8" }).split(" ")[1];
  const named = ["@runloop/api-client", "@computesdk/runloop", "undici", "bun"]
    .map((name) => `${name} ${devDependencies[name]}`)
    .join(", ");
  const { processor, cores } = machine();
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: `${processor}, ${cores} cores, ${platform()} ${release()} ${arch()}`,
    versions: `Node ${process.versions.node}, rustc ${rustc}, ${named}`,
  };
}

/** CPU of a small command by commands in flight, both axes by powers. */
function plot(rows, results) {
  const points = rows.filter((row) => row.job.measure === "exec");
  if (points.length === 0) return "";
  const [width, height, left, top] = [860, 420, 60, 40];
  const x = (index) => left + (index * 480) / Math.max(1, points.length - 1);
  const y = (value) => top + 320 * (1 - Math.log10(value / 10) / 2.5);
  const colours = [
    "#0b6",
    "#084",
    "#5b0",
    "#d33",
    "#a00",
    "#e80",
    "#36c",
    "#69f",
    "#80c",
    "#444",
    "#999",
  ];
  const grid = [10, 30, 100, 300, 1000, 3000].map(
    (value) =>
      `<line x1="${left}" x2="${left + 480}" y1="${y(value)}" y2="${y(value)}" stroke="#ddd"/>` +
      `<text x="${left - 8}" y="${y(value) + 4}" text-anchor="end">${value}</text>`,
  );
  const marks = points.map(
    (row, index) =>
      `<text x="${x(index)}" y="${top + 342}" text-anchor="middle">${row.job.inFlight}</text>`,
  );
  const lines = points[0].who.map((who, index) => {
    const values = points
      .map((row, at) => [x(at), y(of(row, results[row.id][who], "µs of CPU a call"))])
      .filter(([, height]) => Number.isFinite(height));
    const path = values.map(([across, height]) => `${across},${height.toFixed(1)}`).join(" ");
    const colour = colours[index];
    const at = top + 20 + index * 24;
    const dots = values.map(
      ([across, height]) => `<circle cx="${across}" cy="${height.toFixed(1)}" r="3"/>`,
    );
    return (
      `<g fill="${colour}">${dots.join("")}</g>` +
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>` +
      `<line x1="565" x2="585" y1="${at - 4}" y2="${at - 4}" stroke="${colour}" stroke-width="3"/>` +
      `<text x="592" y="${at}">${starts[who].label}</text>`
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<title>CPU of a small command, by commands in flight</title>
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="${left}" y="22" font-size="14">µs of CPU for one small command, by commands in flight</text>
${[...grid, ...marks, ...lines].join("\n")}
</svg>
`;
}
