/**
 * Work whose every mutation survives a crash: `saved-work.mjs FILE`.
 *
 * Each operation's reference is saved before its first byte is sent. Kill this
 * at any moment; `recover.mjs FILE` then finds and cleans everything it made.
 */

import { appendFileSync } from "node:fs";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const [file] = process.argv.slice(2);
const onSubmit = (reference) => appendFileSync(file, `${JSON.stringify(reference)}\n`);

const client = await Beachside.connect(runloop({ apiKey: process.env.RUNLOOP_API_KEY }));
console.log("create");
const source = await client.sandboxes.create({ onSubmit });
await source.writeFile("/home/user/work", "half done", { overwrite: true });
console.log("capture");
const { snapshot } = await source.snapshot({ onSubmit });
console.log("restore");
const restored = await snapshot.restore({ onSubmit });
console.log(await restored.readTextFile("/home/user/work"));
console.log("destroy");
await restored.destroy({ onSubmit });
await source.destroy({ onSubmit });
console.log("delete");
await snapshot.delete({ onSubmit });
await client.close();
