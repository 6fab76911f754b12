import { parentPort, workerData } from "node:worker_threads";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const { apiKey, baseUrl, sandbox, commands, index } = workerData;
const client = await Beachside.connect(runloop({ apiKey, baseUrl, network: "internet" }));
const box = await client.sandboxes.get(sandbox);
for (let number = 0; number < commands; number += 4) {
  const four = [0, 1, 2, 3].map(async (each) => {
    const word = `${index}-${number + each}`;
    const { stdout } = await box.exec(["printf", word]);
    if (Buffer.from(stdout).toString() !== word) throw new Error(`${word} became ${stdout}`);
    parentPort.postMessage(word);
  });
  await Promise.all(four);
}
await client.close();
