"use strict";

/**
 * Who is told what while calls run: functions by the number that the addon
 * knows them by. A call's is forgotten when it has settled, a connection's when it is closed.
 */

const { native } = require("./native.js");

/** @type {Map<number, (what: any) => void>} */
const listeners = new Map();
let last = 0;
let listening = false;

/**
 * Runs `start` with the number of a listener, or with none where nobody wants
 * to be told.
 *
 * @template T
 * @param {((what: any) => void) | undefined} listener
 * @param {(listener?: number) => Promise<T>} start
 * @returns {Promise<T>}
 */
function told(listener, start) {
  return listener === undefined ? start() : telling(listener, start);
}

/**
 * @template T
 * @param {(what: any) => void} listener
 * @param {(listener: number) => Promise<T>} start
 */
async function telling(listener, start) {
  const number = numbered(listener);
  try {
    return await start(number);
  } finally {
    listeners.delete(number);
  }
}

/**
 * The number of a function that is told from now on.
 *
 * @param {(what: any) => void} listener
 */
function numbered(listener) {
  listen();
  do last = (last + 1) >>> 0;
  while (listeners.has(last));
  listeners.set(last, listener);
  return last;
}

/** @param {number} number */
function forget(number) {
  listeners.delete(number);
}

function listen() {
  if (listening) return;
  listening = true;
  native().listen((number, text) => listeners.get(number)?.(JSON.parse(text)));
}

module.exports = { forget, numbered, told };
