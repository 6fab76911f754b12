/**
 * Checks of what callers pass, for every provider alike.
 *
 * Each check names the argument, never shows its value (it may be a secret)
 * and fails with `INVALID_ARGUMENT` before anything is sent. Limits that are a
 * provider's own are its adapter's to check.
 */

import { BeachsideError, isBeachsideError } from "./errors.js";
import { otherWay, recordInstead } from "./habits.js";
import type { StoragePolicy } from "./references.js";

/** The error for a call that is wrong in itself. */
export function invalid(message: string, cause?: unknown): BeachsideError {
  return new BeachsideError(message, {
    code: "INVALID_ARGUMENT",
    ...(cause === undefined ? {} : { cause }),
  });
}

/**
 * Runs checks of arguments. What a getter or proxy of the caller's throws
 * meanwhile is a call that is wrong in itself, too.
 */
export function readable<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (isBeachsideError(error)) throw error;
    throw invalid("The arguments of the call could not be read.", error);
  }
}

/** A plain record, as opposed to an array, a class instance or a primitive. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm has another Object.prototype, itself without a prototype.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * The options of a call: a plain record with known keys only, copied, so that
 * each is read once. `undefined` gives an empty record; a key whose value is
 * `undefined` counts as omitted.
 */
export function optionsOf<Key extends string>(
  call: string,
  value: unknown,
  keys: readonly Key[],
): { readonly [K in Key]?: unknown } {
  if (value === undefined) return {};
  if (!isRecord(value)) {
    const instead = recordInstead(call);
    const hint = instead === undefined ? "." : `; ${instead}`;
    throw invalid(`${call}: options must be a plain object, not ${typeOf(value)}${hint}`);
  }
  knownKeys(`${call}: options`, value, keys, call);
  return { ...value } as { [K in Key]?: unknown };
}

/**
 * Refuses a key that is not in the list, and names what does the same here, or
 * the nearest one that is. `call` is the one whose options they are.
 */
export function knownKeys(
  what: string,
  value: object,
  keys: readonly string[],
  call?: string,
): void {
  for (const key of Object.keys(value)) {
    if (keys.includes(key)) continue;
    const near = nearest(key, keys);
    const nearby = near === undefined ? `known are ${keys.join(", ")}` : `did you mean "${near}"?`;
    const hint = otherWay(call, key, keys) ?? nearby;
    throw invalid(`${what} has an unknown key ${quote(key)}; ${hint}`);
  }
}

/** A string of whole characters without NUL; `allowEmpty` where "" has a meaning. */
export function text(what: string, value: unknown, { allowEmpty = false } = {}): string {
  if (typeof value !== "string") throw invalid(`${what} must be a string, not ${typeOf(value)}.`);
  if (value === "" && !allowEmpty) throw invalid(`${what} must not be empty.`);
  if (value.includes("\0")) throw invalid(`${what} must not hold a NUL character.`);
  if (!isWellFormed(value)) throw invalid(`${what} must not hold half of a surrogate pair.`);
  return value;
}

/** A record with one field, or an empty one where the value, or what became of it, is `undefined`. */
export function optional<Key extends string, T>(
  key: Key,
  value: unknown,
  check: (value: unknown) => T | undefined,
): { readonly [K in Key]?: T } {
  const checked = value === undefined ? undefined : check(value);
  return checked === undefined ? {} : ({ [key]: checked } as { [K in Key]: T });
}

/** One of a few strings. */
export function oneOf<const T extends string>(
  what: string,
  value: unknown,
  allowed: readonly T[],
): T {
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  const list = allowed.map((word) => `"${word}"`).join(" or ");
  const given = typeof value === "string" ? quote(value) : typeOf(value);
  throw invalid(`${what} must be ${list}, not ${given}.`);
}

/** What to do where mounted storage may not be durable. */
export function storagePolicy(value: unknown): StoragePolicy {
  return oneOf("cleanup.storage", value, ["require-durable", "allow-unconfirmed"]);
}

/** A number in a range, both ends included; `integer` by default. */
export function number(
  what: string,
  value: unknown,
  range: {
    readonly min?: number;
    readonly moreThan?: number;
    readonly max: number;
    readonly integer?: boolean;
    /** How to write it, for the message. */
    readonly hint?: string;
  },
): number {
  const { min, moreThan, max, integer = true, hint } = range;
  const fits =
    typeof value === "number" &&
    (integer ? Number.isInteger(value) : Number.isFinite(value)) &&
    (min === undefined || value >= min) &&
    (moreThan === undefined || value > moreThan) &&
    value <= max;
  if (fits) return value;
  const low = moreThan === undefined ? `from ${min ?? 0} to` : `more than ${moreThan} and at most`;
  const given = typeof value === "number" ? String(value) : typeOf(value);
  const example = hint === undefined ? "" : `; ${hint}`;
  throw invalid(
    `${what} must be ${integer ? "a whole number" : "a number"} ${low} ${max}, not ${given}${example || "."}`,
  );
}

/** `true` or `false`; `undefined` counts as `false`. */
export function flag(what: string, value: unknown): boolean {
  if (value === undefined) return false;
  if (typeof value !== "boolean") throw invalid(`${what} must be true or false.`);
  return value;
}

/** A function, or `undefined`. */
export function callback<F>(what: string, value: unknown): F | undefined {
  if (value === undefined || typeof value === "function") return value as F | undefined;
  throw invalid(`${what} must be a function, not ${typeOf(value)}.`);
}

/** An `AbortSignal`, of this realm or another, or `undefined`. */
export function signalOf(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  const like = value as Partial<AbortSignal> | null;
  if (
    typeof like === "object" &&
    typeof like?.aborted === "boolean" &&
    typeof like.addEventListener === "function" &&
    typeof like.removeEventListener === "function"
  ) {
    return value as AbortSignal;
  }
  const isController = typeof (value as Partial<AbortController> | null)?.signal === "object";
  const hint = isController ? "; pass controller.signal" : ".";
  throw invalid(`signal must be an AbortSignal, not ${typeOf(value)}${hint}`);
}

/**
 * Bytes as given, or the UTF-8 bytes of a string. The adapter copies them
 * before a call returns; where an `onSubmit` comes first, they are copied here.
 */
export function bytesOf(what: string, value: unknown, onSubmit: unknown): Uint8Array {
  // Views of another realm, such as another vm context, fail `instanceof`.
  if (Object.prototype.toString.call(value) === "[object Uint8Array]") {
    const bytes = value as Uint8Array;
    return onSubmit === undefined ? bytes : Uint8Array.from(bytes);
  }
  if (typeof value === "string") {
    if (!isWellFormed(value)) throw invalid(`${what} must not hold half of a surrogate pair.`);
    return new TextEncoder().encode(value);
  }
  throw invalid(`${what} must be a Uint8Array or a string, not ${typeOf(value)}.`);
}

/**
 * Environment variables: names as POSIX shells accept them, values without
 * NUL. `undefined` for no or an empty record.
 */
export function environment(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) {
    throw invalid(`env must be a plain object of strings, not ${typeOf(value)}.`);
  }
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  if (entries.length === 0) return undefined;
  for (const [name, each] of entries) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw invalid(
        `env has the name ${quote(name)}; a name is letters, digits and _, not first a digit.`,
      );
    }
    text(`env.${name}`, each, { allowEmpty: true });
  }
  // fromEntries defines, so that a variable called __proto__ is kept.
  return Object.fromEntries(entries) as Record<string, string>;
}

/** Text labels by name, or `undefined` for no or an empty record. */
export function labelsOf(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) throw invalid("labels must be a plain object of strings.");
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  if (entries.length === 0) return undefined;
  for (const [name, each] of entries) {
    text("a label's name", name);
    text(`labels.${name}`, each, { allowEmpty: true });
  }
  return Object.fromEntries(entries) as Record<string, string>;
}

/** The known word that is nearest to a mistyped one, where one is near enough. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** A name of the caller's choosing, safe to print: cut, and on one line. */
export function quote(value: string): string {
  return JSON.stringify(value.length > 64 ? `${value.slice(0, 64)}…` : value);
}

/** What a value is, in words, without the value: it may be a secret. */
export function typeOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function isWellFormed(value: string): boolean {
  // String.prototype.isWellFormed, which the ES2023 library does not know.
  return !/\p{Surrogate}/u.test(value);
}

/** Levenshtein distance. Both words are short: they are option names. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
