/**
 * Looks for secrets in whatever callers may print or store.
 *
 * `rejection()` sends every error of every test through `assertKept`, so that
 * a secret which a test registers is looked for in all of its errors.
 */

import assert from "node:assert/strict";
import util from "node:util";
import { keep, keepFromAll } from "./suite-log.mjs";

const secrets = new Map();

/** From here on no error may show `text`; `name` says what it is. */
export function keepSecret(name, text) {
  secrets.set(text, name);
  keepFromAll(name, text);
  return text;
}

/** Everything that a value shows: inspected, as JSON, as text, its stack and its causes. */
export function shown(value) {
  const parts = [];
  for (let each = value; each !== undefined && each !== null; each = each.cause) {
    parts.push(util.inspect(each, { depth: 20, maxArrayLength: null, maxStringLength: null }));
    parts.push(util.format("%s %O %j", each, each, each), String(each));
    if (each instanceof Error) parts.push(each.stack, each.message, each.toString());
    if (parts.length > 100) break;
  }
  parts.push(JSON.stringify(value) ?? "");
  try {
    parts.push(util.inspect(structuredClone(value), { depth: 20 }));
  } catch {
    // A handle cannot be cloned.
  }
  return parts.join("\n");
}

/** Fails where a value shows a secret, in the clear, in base64 or percent-encoded. */
export function assertKept(value, where = "") {
  const text = typeof value === "string" ? value : shown(value);
  for (const [secret, name] of secrets) {
    const forms = {
      "as it is": secret,
      "in base64": Buffer.from(secret).toString("base64").slice(0, -4),
      "percent-encoded": encodeURIComponent(secret),
    };
    for (const [form, looked] of Object.entries(forms)) {
      // Not the text itself: a failure must not be the leak.
      assert.ok(!text.includes(looked), `${where} shows ${name} ${form}`);
    }
  }
  // Other tests have other secrets.
  keep(text);
}
