/**
 * Cleans what a killed script made, from its saved operation references alone:
 * `recover.mjs FILE`, where FILE holds one reference a line.
 *
 * Never repeats a create or a capture. Prints what was cleaned and what was
 * not observed: such an operation may still arrive, so its reference is to be
 * kept and asked for again later.
 */

import { readFileSync } from "node:fs";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const saved = readFileSync(process.argv[2], "utf8")
  .split("\n")
  // A last line that was cut was never submitted: its hook had not returned.
  .slice(0, -1)
  .map((line) => JSON.parse(line));
const client = await Beachside.connect(runloop({ apiKey: process.env.RUNLOOP_API_KEY }));

/** What became of an operation, after what is in progress has ended. */
async function settled(reference) {
  for (;;) {
    const found = await client.recover(reference);
    if (found.status !== "in_progress") return found;
    // How it ended is what recover() says next.
    await found.continue().catch(() => {});
  }
}

const MAKING = ["sandbox_create", "snapshot_restore", "snapshot_capture"];
const report = { destroyed: 0, deleted: 0, open: [] };
const sandboxes = [];
const snapshots = [];
for (const reference of saved.filter(({ operation }) => MAKING.includes(operation))) {
  const { status, state, sandbox, snapshot } = await settled(reference);
  if (sandbox !== undefined && state !== "destroyed") sandboxes.push(sandbox);
  else if (snapshot !== undefined && state !== "deleted") snapshots.push(snapshot);
  if (status === "not_observed" || status === "ambiguous" || status === "unknown") {
    report.open.push({ status, ...reference });
  }
}
// No capture is under way any more, so nothing keeps a sandbox from being destroyed.
for (const sandbox of sandboxes) {
  await sandbox.destroy();
  report.destroyed += 1;
}
for (const snapshot of snapshots) {
  await snapshot.delete();
  report.deleted += 1;
}
console.log(JSON.stringify(report));
await client.close();
