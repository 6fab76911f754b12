/**
 * What a client process knew, line by line, so that it survives a SIGKILL.
 *
 * `op` before a mutation is sent, `end` when its call has ended; `run` before
 * a command with a token is sent, `ran` when it has ended well; `may` before a
 * file is written, `is` when it was; `violation` where the model was broken.
 */

import { appendFileSync, existsSync, readFileSync } from "node:fs";

export class Log {
  #file;

  constructor(file) {
    this.#file = file;
  }

  write(type, fields) {
    appendFileSync(this.#file, `${JSON.stringify({ type, ...fields })}\n`);
  }

  violation(what) {
    this.write("violation", { what });
  }
}

export function linesOf(file) {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}
