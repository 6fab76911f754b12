/** What to do about an error, in a sentence, where something general can be said. */

import type { BeachsideError, ErrorCode } from "./errors.js";

const BY_CODE: { readonly [Code in ErrorCode]?: string } = {
  UNAUTHENTICATED: "Check the API key: it may be mistyped, revoked, or of another environment.",
  PERMISSION_DENIED: "Check what the account and its key may do.",
  UNSUPPORTED:
    "client.capabilities() says what this connection can do, and why it cannot do the rest.",
  RATE_LIMITED: "Make fewer calls at a time, and wait before the next one.",
  DEADLINE_EXCEEDED:
    "What was waited for may still happen; error.outcome names it. The connection's timeouts can be longer.",
  OUTCOME_UNKNOWN:
    "It may have happened. Find out before you repeat it: client.recover(error.outcome.operation), or look at the resource.",
  SOURCE_RESTART_FAILED: "The snapshot is good. resume() starts its source again.",
  SCOPE_MISMATCH: "Connect to the account that the reference was made in.",
  COMMAND_FAILED: "error.result has the exit code and all output.",
};

/** The suggestion for an error; `undefined` where its message says all. */
export function suggestionFor(error: BeachsideError): string | undefined {
  const { code, resource, reason, retryAfterSeconds, outcome } = error;
  if (code === "RATE_LIMITED" && retryAfterSeconds !== undefined) {
    return `Wait ${retryAfterSeconds} seconds before the next call, and make fewer at a time.`;
  }
  if (code === "NOT_RUNNING" && resource?.kind === "sandbox") {
    if (reason === "suspended") return "resume() starts it again; its disk is as it was.";
    if (reason === "ended") return "Make another, or restore a snapshot of it.";
    return "inspect() says how the sandbox is; one that is suspended starts with resume().";
  }
  if (code === "UNAVAILABLE" && outcome?.submitted !== true) {
    return "Nothing was changed. Try again; if it stays, check the network, proxies and the address of the API.";
  }
  return BY_CODE[code];
}
