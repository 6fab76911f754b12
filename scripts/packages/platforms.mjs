/**
 * The platforms that a package is made for: one table, which the build, the
 * packing and the tests read. What the loader knows of them is in
 * `loader/platform.js`; a test holds the two together.
 */

import { createRequire } from "node:module";

const loader = createRequire(import.meta.url)("../../loader/platform.js");

export const { OLDEST_GLIBC, platformName: hostPlatform } = loader;

/**
 * By name: what npm matches against the machine, what cargo calls the
 * platform, and what the linker is given, where that differs.
 */
export const PLATFORMS = {
  "darwin-arm64": { os: "darwin", cpu: "arm64", triple: "aarch64-apple-darwin" },
  "darwin-x64": { os: "darwin", cpu: "x64", triple: "x86_64-apple-darwin" },
  "linux-arm64-gnu": linux("arm64", "glibc", "aarch64-unknown-linux-gnu"),
  "linux-arm64-musl": linux("arm64", "musl", "aarch64-unknown-linux-musl"),
  "linux-x64-gnu": linux("x64", "glibc", "x86_64-unknown-linux-gnu"),
  "linux-x64-musl": linux("x64", "musl", "x86_64-unknown-linux-musl"),
  "win32-x64-msvc": { os: "win32", cpu: "x64", triple: "x86_64-pc-windows-msvc" },
};

function linux(cpu, libc, triple) {
  return {
    os: "linux",
    cpu,
    libc,
    triple,
    linked: libc === "glibc" ? `${triple}.${OLDEST_GLIBC}` : triple,
  };
}
