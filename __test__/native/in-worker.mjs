import { parentPort, workerData } from "node:worker_threads";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const client = await Beachside.connect(runloop(workerData));
const box = await client.sandboxes.create();
const { stdout } = await box.exec(["printf", "worker"]);
parentPort.postMessage(Buffer.from(stdout).toString());
// The parent ends this in mid-flight.
await box.exec("sleep 60");
