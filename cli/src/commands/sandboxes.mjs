/** `ls`, `preview`, `destroy`. */

import { Failure } from "../failure.mjs";
import { findSandbox } from "../find.mjs";
import { withSession } from "../session.mjs";

/** @import { GlobalOptions } from "../session.mjs" */

/** @param {{ all?: boolean } & GlobalOptions} options */
export function list(options) {
  return withSession(options, {}, async ({ client, store, screen, signal }) => {
    const saved = await store.all("sandbox");
    const rows = [];
    for await (const item of client.sandboxes.list({ limit: 100, signal })) {
      if (!options.all && item.state === "destroyed") continue;
      const mine = saved.find(
        ({ reference }) => "id" in reference && reference.id === item.reference.id,
      );
      rows.push({
        id: item.reference.id,
        name: mine?.name ?? null,
        state: item.state,
        created: item.createdAt,
        mine: mine === undefined ? "no" : "yes",
      });
    }
    screen.table(rows, ["id", "name", "state", "created", "mine"]);
  });
}

/**
 * @param {string} sandbox
 * @param {number} port
 * @param {{ showHeader?: boolean } & GlobalOptions} options
 */
export function preview(sandbox, port, options) {
  return withSession(options, {}, async ({ client, store, screen, signal }) => {
    const box = await findSandbox(client, store, sandbox, signal);
    const { url, access, headers } = await box.preview(port, { signal });
    const shown = options.showHeader ? { url, access, headers } : { url, access };
    const lines = Object.entries(options.showHeader ? headers : {});
    screen.result(shown, [url, ...lines.map(([name, value]) => `${name}: ${value}`)].join("\n"));
    if (access === "protected" && !options.showHeader && !options.json) {
      screen.note("It is protected; --show-header prints the header to send.");
    }
  });
}

/**
 * All of them, also when one fails.
 *
 * @param {string[]} names
 * @param {GlobalOptions} options
 */
export function destroy(names, options) {
  return withSession(options, {}, async ({ client, store, screen, signal }) => {
    let failures = 0;
    for (const name of names) {
      try {
        const box = await findSandbox(client, store, name, signal);
        const { alreadyGone } = await box.destroy({ signal });
        await store.forget(box.reference);
        const { id } = box.reference;
        screen.result(
          { id, alreadyGone },
          `${id} ${alreadyGone ? "was gone already" : "destroyed"}`,
        );
      } catch (error) {
        if (signal.aborted || names.length === 1) throw error;
        failures += 1;
        screen.note(`${name}: ${error instanceof Error ? error.message : error}`);
      }
    }
    if (failures > 0) throw new Failure(`${failures} of ${names.length} could not be destroyed.`);
  });
}
