/** Tables of medians and ratios, the plot, and the raw figures as JSON. */

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { arch, platform, release } from "node:os";
import { fileURLToPath } from "node:url";
import { median } from "./measures.mjs";
import { machine, starts } from "./rows.mjs";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Prints the tables; with `toFiles` writes RESULTS.md, results.json and cpu.svg. */
export function write(rows, results, { rounds, imports, installed, toFiles }) {
  const tables = rows.map((row) => table(row, results[row.id])).join("\n");
  if (!toFiles) {
    console.log(tables);
    return;
  }
  const facts = versions();
  const text = `# Benchmark results

Written by \`make bench\` on ${facts.date}; do not edit. Medians of ${rounds} rounds in turn; "of the SDK's" is the ratio to
the official SDK's default (TLS and HTTP/2). One server process on the same machine takes its share of the cores. How it is
measured: \`bench/bench.mjs\`; what follows from it: \`docs/design/performance.md\`.

${facts.machine}; ${facts.versions}.

![CPU of a small command by commands in flight](cpu.svg)

${packageTable(imports, installed)}
${tables}`;
  writeFileSync(here("RESULTS.md"), text);
  const all = { ...facts, rounds, imports, installed, rows: raw(rows, results) };
  writeFileSync(here("results.json"), `${JSON.stringify(all, null, 2)}\n`);
  writeFileSync(here("cpu.svg"), plot(rows, results));
  console.log("written: bench/RESULTS.md, bench/results.json, bench/cpu.svg");
}

function raw(rows, results) {
  return rows.map(({ id, title, job }) => ({ id, title, job, rounds: results[id] }));
}

function of(row, figures, name) {
  return median(figures.map((each) => row.show[name](each, row.job)));
}

function table(row, measured) {
  const names = Object.keys(row.show);
  const base = measured["sdk-h2"];
  const head = names.flatMap((name) => (base ? [name, "of the SDK's"] : [name]));
  const lines = row.who.map((who) => {
    const cells = names.flatMap((name) => {
      const value = of(row, measured[who], name);
      if (!base) return [round(value)];
      return [round(value), round(value / of(row, base, name))];
    });
    return `| ${starts[who].label} | ${cells.join(" | ")} |`;
  });
  const rule = `| --- |${" --- |".repeat(head.length)}`;
  return `## ${row.title}\n\n| | ${head.join(" | ")} |\n${rule}\n${lines.join("\n")}\n`;
}

function packageTable(imports, installed) {
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

The addon alone is ${round(installed.ours.addonBytes / 1e6)} MB.
`;
}

function round(value) {
  if (!Number.isFinite(value)) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return Number(value.toFixed(digits)).toLocaleString("en");
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
  const [width, height, left, top] = [860, 420, 60, 40];
  const x = (index) => left + (index * 480) / Math.max(1, points.length - 1);
  const y = (value) => top + 320 * (1 - Math.log10(value / 10) / 2.5);
  const colours = ["#0b6", "#084", "#5b0", "#d33", "#a00", "#e80", "#36c", "#69f", "#80c", "#444"];
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
    const values = points.map((row) => of(row, results[row.id][who], "µs of CPU a call"));
    const path = values.map((value, at) => `${x(at)},${y(value).toFixed(1)}`).join(" ");
    const colour = colours[index];
    const at = top + 20 + index * 24;
    const dots = values.map(
      (value, at) => `<circle cx="${x(at)}" cy="${y(value).toFixed(1)}" r="3"/>`,
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
