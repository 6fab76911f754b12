"use strict";

/**
 * Which binary this process needs, and whether a file is one in full.
 *
 * Knows names of platforms and two facts of file formats; loading is
 * `binary.js`.
 */

const fs = require("node:fs");

/** The platforms that a package exists for, by the name at the end of the package's own. */
const PLATFORMS = Object.freeze([
  "darwin-arm64",
  "darwin-x64",
  "linux-arm64-gnu",
  "linux-arm64-musl",
  "linux-x64-gnu",
  "linux-x64-musl",
  "win32-x64-msvc",
]);

/** The oldest glibc that the Linux binaries run on; `docs/versioning.md` promises it. */
const OLDEST_GLIBC = "2.17";

/** The name of this platform, for example `linux-x64-gnu`, whether there is a binary for it or not. */
function platformName() {
  const { platform, arch } = process;
  if (platform === "linux") return `linux-${arch}-${libc()}`;
  return platform === "win32" ? `win32-${arch}-msvc` : `${platform}-${arch}`;
}

/**
 * The C library that this process runs on.
 *
 * An executable names its dynamic linker near its start, and the linker
 * belongs to the library. One that is linked statically names none; its
 * report says whether it holds glibc.
 *
 * @returns {"gnu" | "musl"}
 */
function libc() {
  const start = beginning(process.execPath, 4096).toString("latin1");
  if (start.includes("/ld-musl-")) return "musl";
  if (/\/ld(?:-linux|64)[\w-]*\.so/.test(start)) return "gnu";
  const { header } = /** @type {any} */ (process.report?.getReport() ?? {});
  return header?.glibcVersionRuntime === undefined ? "musl" : "gnu";
}

/**
 * Throws when an ELF file ends before what its header promises. The dynamic
 * linker maps such a file without a look at its length, and the first touch of
 * a page that is not there ends the process. The linkers of macOS and Windows
 * refuse by themselves.
 *
 * @param {string} file
 */
function assertWhole(file) {
  if (process.platform !== "linux") return;
  const { size } = fs.statSync(file);
  const header = beginning(file, 64);
  const isElf64 = header.length === 64 && header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2;
  // The table of sections stands at the end of the file.
  const promised = isElf64
    ? Number(header.readBigUInt64LE(0x28)) + header.readUInt16LE(0x3a) * header.readUInt16LE(0x3c)
    : Number.POSITIVE_INFINITY;
  if (size >= promised) return;
  const expected = isElf64 ? ` ${promised}` : " a binary";
  throw new Error(`${file} is not complete: it has ${size} bytes of${expected}`);
}

/**
 * @param {string} file
 * @param {number} length
 */
function beginning(file, length) {
  const descriptor = fs.openSync(file, "r");
  try {
    const buffer = Buffer.alloc(length);
    return buffer.subarray(0, fs.readSync(descriptor, buffer, 0, length, 0));
  } finally {
    fs.closeSync(descriptor);
  }
}

module.exports = { assertWhole, OLDEST_GLIBC, PLATFORMS, platformName };
