/** Creates a sandbox without saving anything before it is sent, as a script does that has no `onSubmit`. */

import { appendFileSync } from "node:fs";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const client = await Beachside.connect(runloop({ apiKey: process.env.RUNLOOP_API_KEY }));
const box = await client.sandboxes.create();
appendFileSync(process.argv[2], `${JSON.stringify(box.reference)}\n`);
await client.close();
