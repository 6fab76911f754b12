/**
 * `gc`: what was made from here and is still there.
 *
 * First finds out what became of operations whose end was not seen, then
 * looks at every saved sandbox. Destroys only with `--yes`, and only what this
 * machine made: the connection compares the markers.
 */

import { isBeachsideError } from "@beachside/runloop/client";
import { withSession } from "../session.mjs";

/** @import { OperationReference } from "@beachside/runloop" */
/** @import { GlobalOptions, Session } from "../session.mjs" */

/** @param {{ yes?: boolean } & GlobalOptions} options */
export function collect(options) {
  return withSession(options, {}, async (session) => {
    const { store, screen } = session;
    /** @type {{ kind: string, id: string, what: string }[]} */
    const rows = [];
    for (const { reference } of await store.all("operation")) {
      if (reference.kind !== "operation") continue;
      rows.push({
        kind: reference.operation,
        id: reference.operationId,
        what: await settle(session, reference),
      });
    }
    for (const { reference } of await store.all("sandbox")) {
      if (reference.kind !== "sandbox") continue;
      const what = await tidy(session, reference, options.yes === true);
      rows.push({ kind: "sandbox", id: reference.id, what });
    }
    for (const { reference } of await store.all("process")) {
      if (reference.kind !== "process") continue;
      const boxes = await store.all("sandbox");
      const alive = boxes.some(
        (saved) => "id" in saved.reference && saved.reference.id === reference.sandbox,
      );
      if (!alive) await store.forget(reference);
    }
    screen.table(rows, ["kind", "id", "what"]);
    if (rows.some(({ what }) => what === LIVE) && !options.json) {
      screen.note("--yes destroys what is still there.");
    }
  });
}

const LIVE = "still there";

/**
 * @param {Session} session
 * @param {OperationReference} operation
 */
async function settle({ client, store, signal }, operation) {
  const found = await client.recover(operation, { signal });
  switch (found.status) {
    case "done":
    case "in_progress": {
      const made = found.sandbox ?? found.snapshot;
      if (made !== undefined) await store.save(made.reference);
      if (found.status === "done") await store.forget(operation);
      return made === undefined ? found.status : `${found.status}: ${made.reference.id}`;
    }
    case "failed": {
      const made = found.sandbox ?? found.snapshot;
      if (made !== undefined) await store.save(made.reference);
      await store.forget(operation);
      return `failed: ${found.reason ?? "the service does not say why"}`;
    }
    case "not_observed":
      // Proves nothing, so it is kept and looked for again.
      return found.searched.complete ? "nothing was seen of it" : "not searched to the end";
    case "ambiguous":
      return `${found.matches.length} things carry its markers`;
    case "refused":
      await store.forget(operation);
      return "refused";
    case "unknown":
      return `unknown: ${found.reason}`;
  }
}

/**
 * @param {Session} session
 * @param {import("@beachside/runloop").SandboxReference} reference
 * @param {boolean} yes
 */
async function tidy({ client, store, signal }, reference, yes) {
  try {
    const box = await client.sandboxes.get(reference, { signal });
    const { state } = await box.inspect({ signal });
    if (state === "destroyed") {
      await store.forget(reference);
      return "gone";
    }
    if (box.reference.ownership.state !== "created") return "left: not proven to be made here";
    if (!yes) return LIVE;
    await box.destroy({ signal });
    await store.forget(reference);
    return "destroyed";
  } catch (error) {
    if (!isBeachsideError(error) || error.code !== "NOT_FOUND") throw error;
    await store.forget(reference);
    return "gone";
  }
}
