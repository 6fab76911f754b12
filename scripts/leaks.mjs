/**
 * Looks for the tests' secrets in everything that they showed.
 *
 *   node scripts/leaks.mjs FOLDER
 *
 * FOLDER is what SUITE_LOG named while they ran: the output of every runner and
 * of every program that tests started, logs of simulators, pages, and every
 * error, reference and handle as text (`__test__/support/suite-log.mjs`). Ends
 * with 1 where a secret shows, or where there is too little to look at.
 */

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** What tests call a secret without saying so at run time, the Rust tests above all. */
const WORDS =
  /\b(?:canary-\w|hunter2|swordfish|s3cr3?et|s3cr3t|env-secret-|ak_(?=\w*\d)\w{8,})[\w-]*/g;

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: leaks.mjs FOLDER");
const read = (name) => readFileSync(path.join(folder, name), "utf8");
const names = readdirSync(folder);

/** Each form in which a secret may show, and what it is. */
const forms = new Map();
for (const name of names.filter((each) => each.endsWith(".secrets"))) {
  for (const line of read(name).trimEnd().split("\n")) {
    const { name: what, secret } = JSON.parse(line);
    forms.set(secret, what);
    forms.set(Buffer.from(secret).toString("base64").slice(0, -4), `${what}, in base64`);
    forms.set(encodeURIComponent(secret), `${what}, percent-encoded`);
  }
}

let size = 0;
const leaks = [];
const shown = names.filter((each) => !each.endsWith(".secrets"));
for (const name of shown) {
  const text = read(name);
  size += text.length;
  const found = (at, what) => {
    // Not the text itself: a failure must not be the leak.
    leaks.push(`${name}:${text.slice(0, at).split("\n").length} shows ${what}`);
  };
  for (const [form, what] of forms) {
    const at = text.indexOf(form);
    if (at !== -1) found(at, what);
  }
  for (const { index, 0: word } of text.matchAll(WORDS)) {
    if (!forms.has(word)) found(index, `a word like ${word.slice(0, 4)}…`);
  }
}

const looked = `${Math.round(size / 1000)} kB in ${shown.length} files, ${forms.size} forms of secrets`;
if (leaks.length > 0) {
  console.error(`${leaks.slice(0, 50).join("\n")}\n${leaks.length} leaks in ${looked}`);
  process.exitCode = 1;
} else if (size === 0 || forms.size === 0) {
  console.error(`nothing to look at: ${looked}`);
  process.exitCode = 1;
} else {
  console.log(`no secret shows: ${looked}`);
}
