/** What the repository says of itself, held against the tree. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { root } from "../scripts/files.mjs";

const read = (file) => readFileSync(path.join(root, file), "utf8");

/** What is made, not written. */
const MADE = new Set(["node_modules", "target"]);

function folders(folder) {
  return readdirSync(path.join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && !MADE.has(entry.name))
    .map(({ name }) => name);
}

/** What stands in backticks in the first column of the tables of a section. */
function firstColumn(document, heading) {
  const section = new RegExp(`^## ${heading}$([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, "m").exec(
    document,
  )[1];
  const rows = [...section.matchAll(/^\| (?!---)([^|]+) \|/gm)].slice(1);
  return rows.flatMap(([, cell]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
}

test("ARCHITECTURE names every folder and every room of the adapter, and none that is not there", () => {
  const architecture = read("ARCHITECTURE.md");
  const rooms = firstColumn(architecture, "Rooms");
  const named = [...rooms, ...firstColumn(architecture, "Other folders")];
  assert.deepEqual(
    named.filter((each) => !existsSync(path.join(root, each))),
    [],
  );
  const bare = (each) => each.replace(/\/$/, "");
  const top = new Set(named.map((each) => each.split("/")[0]));
  assert.deepEqual(
    folders(".").filter((each) => !top.has(each)),
    [],
  );
  const adapter = readdirSync(path.join(root, "src"))
    .filter((name) => name !== "lib.rs")
    .map((name) => `src/${name.replace(/\.rs$/, "")}`);
  const said = new Set(rooms.map((each) => bare(each).replace(/\.rs$/, "")));
  assert.deepEqual(
    [...new Set(adapter)].filter((each) => !said.has(each)),
    [],
  );
});

test("every direct dependency has a line in docs/design/dependencies.md, and every line a dependency", () => {
  const rows = [...read("docs/design/dependencies.md").matchAll(/^\| (?!---)([^|]+) \|/gm)];
  const said = new Set(
    rows.flatMap(([, cell]) => cell.replace(/\(.*?\)/g, "").split(",")).map((name) => name.trim()),
  );
  const used = new Set();
  for (const file of ["package.json", "cli/package.json", "__test__/runtimes/package.json"]) {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read(file));
    const all = { ...dependencies, ...devDependencies, ...optionalDependencies };
    for (const [name, version] of Object.entries(all)) {
      if (version.startsWith("file:")) continue;
      used.add(/^npm:(.*)@/.exec(version)?.[1] ?? name);
    }
  }
  for (const file of ["Cargo.toml", "simulator/Cargo.toml"]) {
    const tables = read(file).split(/^\[/m);
    for (const table of tables.filter((each) =>
      /^(target\..*\.)?(dev-|build-)?dependencies\]/.test(each),
    )) {
      for (const [, name, rest] of table.matchAll(/^([\w-]+)(?:\.workspace)? = (.*)$/gm)) {
        if (!rest.includes("path =")) used.add(name);
      }
    }
  }
  assert.ok(used.size > 50);
  assert.deepEqual([...used].filter((name) => !said.has(name)).sort(), []);
  // Python packages are named in the scripts that install them.
  const scripts = ["scripts/setup.sh", "scripts/zig.sh"].map(read).join("");
  const heads = new Set(["Crate", "Package"]);
  const idle = [...said].filter((name) => !used.has(name) && !heads.has(name));
  assert.deepEqual(
    idle.filter(
      (name) =>
        !scripts.includes(`${name}==`) && !read(".github/workflows/test.yml").includes(name),
    ),
    [],
  );
});

test("every workflow says that it has not run, as long as it has not", () => {
  for (const name of readdirSync(path.join(root, ".github/workflows"))) {
    assert.match(read(`.github/workflows/${name}`), /^# NOT RUN YET\./, name);
  }
});
