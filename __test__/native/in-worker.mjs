import { parentPort, workerData } from "node:worker_threads";
import { BeachsideError, runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const client = await Beachside.connect(runloop(workerData));
const box = await client.sandboxes.create();
const { stdout } = await box.exec(["printf", "worker"]);
const error = await box.readFile("/missing").catch((error) => error);
parentPort.postMessage({
  printed: Buffer.from(stdout).toString(),
  ours: error instanceof BeachsideError,
  code: error.code,
});
// The parent ends this in mid-flight.
await box.exec("sleep 60");
