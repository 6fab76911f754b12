"use strict";

/**
 * Values on their way into the addon: as JSON text, and as bytes.
 */

const { types } = require("node:util");
const { invalid } = require("./calls.js");

/**
 * JSON text of plain data, for requests and settings.
 *
 * `JSON.stringify` drops functions and symbols, turns NaN into null and a Map
 * into {}; a setting lost that way would silently become its default. So
 * what JSON cannot say is refused, by path and without its value. A key whose
 * value is `undefined` counts as omitted.
 *
 * @param {string} what names the value in an error
 * @param {unknown} value
 */
function json(what, value) {
  check(what, value, []);
  return JSON.stringify(value);
}

/**
 * @param {string} path
 * @param {unknown} value
 * @param {object[]} above the objects that hold this one
 */
function check(path, value, above) {
  if (typeof value === "number" && Number.isFinite(value)) return;
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value !== "object") {
    const found = value === undefined ? "undefined" : `a ${typeof value}`;
    throw invalid(`${path} must be plain data, not ${found}.`);
  }
  if (above.includes(value)) throw invalid(`${path} must not contain itself.`);
  const within = [...above, value];
  if (Array.isArray(value)) {
    // By index, because the array's own iteration methods skip holes.
    for (let index = 0; index < value.length; index++) {
      check(`${path}[${index}]`, value[index], within);
    }
    return;
  }
  if (!isPlain(value)) throw invalid(`${path} must be plain data, not an instance of a class.`);
  for (const [key, each] of Object.entries(value)) {
    if (each !== undefined) check(`${path}.${key}`, each, within);
  }
}

/** @param {object} value */
function isPlain(value) {
  const prototype = Object.getPrototypeOf(value);
  // An object of another realm has another Object.prototype, itself without a prototype.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * Bytes as the addon may read them, at once: it copies them before the call
 * returns. A view sends its own window of its buffer.
 *
 * @param {string} what names the value in an error
 * @param {Uint8Array} value
 */
function bytes(what, value) {
  if (!types.isUint8Array(value)) throw invalid(`${what} must be a Uint8Array.`);
  try {
    // Reads nothing, but throws for a view whose buffer was transferred away or
    // shrunk from under it: such a view looks empty, and would be sent as empty.
    Uint8Array.prototype.at.call(value, 0);
  } catch {
    throw invalid(`${what} is a view of a buffer that is detached or too short.`);
  }
  // Another thread may write to shared memory at any time, so JavaScript copies
  // it: the addon must not read memory that changes under it.
  return types.isSharedArrayBuffer(value.buffer) ? Uint8Array.from(value) : value;
}

module.exports = { bytes, json };
