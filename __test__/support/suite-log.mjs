/**
 * Keeps what the tests show, so that scripts/leaks.mjs can look through all of it.
 *
 * SUITE_LOG names a folder; `make test` sets it. Each process has its own files
 * there: what it showed, and the secrets that it used.
 */

import { appendFileSync } from "node:fs";
import path from "node:path";

const folder = process.env.SUITE_LOG;
const file = (kind) => path.join(folder, `${process.pid}.${kind}`);

/** Keeps a text that somebody could read; nothing without SUITE_LOG. */
export function keep(text) {
  if (folder !== undefined && text !== "") appendFileSync(file("shown"), `${text}\n`);
}

/** Has everything that any process shows looked through for `secret`; `name` says what it is. */
export function keepFromAll(name, secret) {
  if (folder !== undefined) {
    appendFileSync(file("secrets"), `${JSON.stringify({ name, secret })}\n`);
  }
}
