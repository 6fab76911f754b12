"use strict";

/**
 * Who is told what while calls run: functions by the number that the addon
 * knows them by. A function is forgotten when its call has settled.
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
  listen();
  // Numbers come round after 2^32 calls, when none of the first is left.
  last = (last + 1) >>> 0;
  const number = last;
  listeners.set(number, listener);
  try {
    return await start(number);
  } finally {
    listeners.delete(number);
  }
}

function listen() {
  if (listening) return;
  listening = true;
  native().listen((number, text) => listeners.get(number)?.(JSON.parse(text)));
}

module.exports = { told };
