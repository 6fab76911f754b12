"use strict";

/**
 * What the addon tells of its requests, handed to the client's observer.
 */

const { forget, numbered } = require("./listeners.js");
const { native } = require("./native.js");

/** @import { Observer } from "../client/dist/trace.js" */

/**
 * The addon's side of an observer, and how to end it. Nothing where there is none.
 *
 * @param {Observer | undefined} observer
 */
function observed(observer) {
  if (observer === undefined) return { told: undefined, end() {} };
  const number = numbered((events) => {
    for (const event of events) {
      observer.publish("time" in event ? event : { ...event, time: Date.now() });
    }
  });
  const told = new (native().Observer)(number);
  observer.onChange((active) => told.activate(active));
  return {
    told,
    end() {
      told.activate(false);
      // What was under way when the connection was closed may still be told.
      setImmediate(() => setImmediate(() => forget(number)));
    },
  };
}

module.exports = { observed };
