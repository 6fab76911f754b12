/**
 * Ids that nobody can guess, for operations and submissions.
 *
 * A UUIDv7 (RFC 9562): sorts by time, and its 74 random bits come from the
 * platform's cryptographic generator.
 */

import { randomUUID } from "node:crypto";

/** A new id. */
export function uniqueId(nowMs = Date.now()): string {
  const time = nowMs.toString(16).padStart(12, "0");
  // Behind its version a random UUID has the variant and the 74 bits that are needed; the
  // platform draws the bits for many of them at once.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
