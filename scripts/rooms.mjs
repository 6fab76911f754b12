/**
 * Slow checks of the pure rooms, for a maintainer; not a part of `make test`.
 *
 *   node scripts/rooms.mjs mutants [ROOM…]   cargo-mutants (`cargo install cargo-mutants --locked`)
 *   node scripts/rooms.mjs miri [FILTER…]    their unit tests in Miri (nightly, `miri`, `rust-src`)
 *   node scripts/rooms.mjs address [FILTER…] with the address sanitizer (nightly)
 *   node scripts/rooms.mjs long              generated tests and the corpus, optimized; TEST_SCALE says how many
 *   node scripts/rooms.mjs test [FILTER…]    as they are, to see that the crate works
 *
 * Builds a crate of the rooms alone, which compiles in a tenth of the time
 * of the adapter: no HTTP, no TLS, no Node. Ends with what the tool ends with.
 */

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { root } from "./files.mjs";

/** Rooms and the files that are mutated for each. */
const ROOMS = {
  sse: ["src/sse/**"],
  shell: ["src/shell/**"],
  wire: ["src/wire/**"],
  config: ["src/config/**", "src/config.rs"],
  path: ["src/api/path.rs"],
  cursor: ["src/adapter/cursor.rs"],
  api: ["src/api/**"],
};

const NIGHTLY = "nightly";
/** Fewer generated inputs: each mutant runs them all, and Miri is a thousand times slower. */
const FEW = { mutants: "64", miri: "2", address: "256", test: "64" };
/** One for each tool, so that they can run side by side. */
const CRATE = path.join(root, "target/rooms", process.argv[2] ?? "");
const read = (file) => readFileSync(path.join(root, file), "utf8");

/** The rooms, what they need of others, and a manifest. */
function makeCrate() {
  rmSync(CRATE, { recursive: true, force: true });
  mkdirSync(path.join(CRATE, "src/adapter"), { recursive: true });
  const copied = ["api", "config", "observe", "shell", "sse", "wire"];
  for (const room of copied) {
    cpSync(path.join(root, "src", room), path.join(CRATE, "src", room), { recursive: true });
  }
  const put = (file, text) => writeFileSync(path.join(CRATE, file), text);
  for (const file of ["src/cases.rs", "src/config.rs", "src/error.rs"]) put(file, read(file));
  // Its tests need the transport.
  put("src/message.rs", read("src/message.rs").split("#[cfg(test)]\nmod tests {")[0]);
  put("src/adapter/cursor.rs", read("src/adapter/cursor.rs"));
  put(
    "src/adapter/records.rs",
    read("src/adapter/records.rs").replace(/^pub use super::.*\n/gm, ""),
  );
  put("src/adapter/mod.rs", "mod cursor;\npub mod records;\n");
  const modules = [...copied, "adapter", "error", "message"].map((name) => `pub mod ${name};\n`);
  put("src/lib.rs", `${modules.join("")}#[cfg(test)]\nmod cases;\n`);
  // Tests of the public rooms, which bring their inputs. Each mutant would be linked with them too.
  if (tool === "long") {
    cpSync(path.join(root, "tests/corpus"), path.join(CRATE, "tests/corpus"), { recursive: true });
    put("tests/corpus.rs", read("tests/corpus.rs"));
  }
  // The versions are those that the adapter is built with.
  put("Cargo.lock", read("Cargo.lock"));
  put("Cargo.toml", manifest());
}

function manifest() {
  const adapters = read("Cargo.toml");
  const shared = /\[workspace\.dependencies\]\n([\s\S]*?)\n\n/.exec(adapters)[1];
  const own = ["httpdate", "strsim", "url"].map(
    (name) => new RegExp(`^${name} = .*$`, "m").exec(adapters)[0],
  );
  return `[package]
name = "beachside-runloop"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
${shared}
${own.join("\n")}

[profile.long]
inherits = "dev"
debug = "line-tables-only"
opt-level = 2

[profile.mutants]
inherits = "dev"
debug = 0
incremental = true

[profile.mutants.package."*"]
opt-level = 2
`;
}

const [tool, ...asked] = process.argv.slice(2);
const command = {
  mutants: () => {
    const rooms = asked.length > 0 ? asked : Object.keys(ROOMS);
    const files = rooms.flatMap((room) => {
      if (!(room in ROOMS)) throw new Error(`no room "${room}"; there are ${Object.keys(ROOMS)}`);
      return ROOMS[room].flatMap((glob) => ["--file", glob]);
    });
    const config = path.join(root, ".cargo/mutants.toml");
    // In place: the crate is a copy already.
    const output = path.join(root, "target/rooms/mutants-of", rooms.join("-"));
    mkdirSync(output, { recursive: true });
    return [
      "mutants",
      "--in-place",
      "--jobserver=false",
      "--config",
      config,
      "--output",
      output,
      ...files,
    ];
  },
  miri: () => [`+${NIGHTLY}`, "miri", "test", "--lib", "--", ...asked],
  address: () => [`+${NIGHTLY}`, "test", "--target", host(), "--lib", "--", ...asked],
  long: () => [
    "test",
    "--profile",
    "long",
    "--lib",
    "--test",
    "corpus",
    "--",
    "--nocapture",
    ...asked,
  ],
  test: () => ["test", "--profile", "mutants", "--lib", "--", ...asked],
}[tool];
if (command === undefined) {
  console.error("say one of: mutants, miri, address, long, test");
  process.exit(2);
}

function host() {
  return /host: (.*)/.exec(spawnSync("rustc", ["-vV"], { encoding: "utf8" }).stdout)[1];
}

makeCrate();
const { status, error } = spawnSync("cargo", command(), {
  cwd: CRATE,
  stdio: "inherit",
  env: {
    ...process.env,
    CARGO_TARGET_DIR: path.join(root, `target/rooms/build-${tool}`),
    ...(tool in FEW && { PROPTEST_CASES: process.env.PROPTEST_CASES ?? FEW[tool] }),
    ...(tool === "address" && { RUSTFLAGS: "-Zsanitizer=address" }),
    // Proptest keeps what failed in files.
    ...(tool === "miri" && { MIRIFLAGS: "-Zmiri-disable-isolation" }),
  },
});
if (error) throw error;
process.exitCode = status ?? 1;
