/** Time limits of calls that wait for something to happen. Seconds, as everywhere. */

import { number } from "./arguments.js";
import { BeachsideError } from "./errors.js";

/** A time limit: more than 0, at most `max` seconds. */
export function secondsOf(what: string, value: unknown, max: number): number {
  return number(what, value, { moreThan: 0, max, integer: false });
}

/** Settles like `work`, or rejects with `DEADLINE_EXCEEDED` once the time is over; `undefined` waits for ever. */
export async function withinSeconds<T>(
  work: Promise<T>,
  seconds: number | undefined,
  what: string,
): Promise<T> {
  if (seconds === undefined) return await work;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooLate(seconds, what)), seconds * 1000);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The error of a wait that took too long. Nothing was undone by it. */
export function tooLate(seconds: number, what: string): BeachsideError {
  return new BeachsideError(`${what} within ${seconds} seconds.`, { code: "DEADLINE_EXCEEDED" });
}
