/**
 * What a snapshot keeps. The constants are the documented spelling; the plain
 * strings work as well.
 */
export const Preserve = Object.freeze({
  /** Files only; restored sandboxes boot fresh. */
  FILESYSTEM: "filesystem",
  /** Files, memory and processes; restored sandboxes go on where the source was. */
  FILESYSTEM_AND_MEMORY: "filesystem+memory",
} as const);

/** See {@link Preserve}. */
export type Preserve = (typeof Preserve)[keyof typeof Preserve];
