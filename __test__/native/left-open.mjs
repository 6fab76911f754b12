// A program that forgets close(): nothing of ours may keep it alive.
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const client = await Beachside.connect(runloop({ apiKey: process.env.RUNLOOP_API_KEY }));
const box = await client.sandboxes.create();
await box.exec("true");
await box.destroy();
if (process.argv[2] === "close") await client.close();
console.log("done");
