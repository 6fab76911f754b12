/**
 * Ids that nobody can guess, for operations and submissions.
 *
 * A UUIDv7 (RFC 9562): sorts by time, and its 74 random bits come from the
 * platform's cryptographic generator.
 */

import { randomFillSync } from "node:crypto";

/** A new id. */
export function uniqueId(nowMs = Date.now()): string {
  const bytes = randomFillSync(Buffer.alloc(16));
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  const hex = bytes.toString("hex");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join("-");
}
