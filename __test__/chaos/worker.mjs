/**
 * A client process of the chaos run: some connections, some lanes of work. It
 * ends at the line "stop", or by SIGKILL at any moment. A process that takes
 * over from a killed one first cleans what that one had saved.
 */

import { createInterface } from "node:readline";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";
import { random } from "../support/scale.mjs";
import { pick } from "./faults.mjs";
import { Lane } from "./lane.mjs";
import { Log, linesOf } from "./log.mjs";

const { RUNLOOP_API_KEY: apiKey, RUNLOOP_BASE_URL: baseUrl } = process.env;
const { seed, file, lanes, connections, inherited, name } = JSON.parse(process.argv[2]);
const next = random(seed);
const log = new Log(file);

const timeouts = { requestSeconds: 3, startSeconds: 20, stopSeconds: 10, captureSeconds: 20 };
const connect = () => Beachside.connect(runloop({ apiKey, baseUrl, timeouts }));

/** The connections; one is closed and made anew now and then, whatever it is doing. */
class Clients {
  #open = [];

  async fill() {
    while (this.#open.length < connections) {
      try {
        this.#open.push(await connect());
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  any(by) {
    return pick(by, this.#open);
  }

  async renew() {
    await this.#open.shift().close();
    await this.fill();
  }

  async close() {
    for (const client of this.#open) await client.close();
  }
}

const clients = new Clients();
await clients.fill();
if (inherited !== undefined) await cleanAfter(inherited);

let isStopped = false;
createInterface({ input: process.stdin }).once("line", () => {
  isStopped = true;
});

const work = Array.from({ length: lanes }, async (_, number) => {
  const lane = new Lane(`${name}.${number}`, clients, random(seed + 1 + number), log);
  while (!isStopped) await lane.step();
});
const renewing = (async () => {
  while (!isStopped) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    if (next() < 0.1) await clients.renew();
  }
})();
try {
  await Promise.all([...work, renewing]);
} catch (error) {
  log.violation(`a lane broke: ${error?.stack ?? error}`);
}
await clients.close();
process.exit(0);

/** What a killed process had made, from its saved references alone. */
async function cleanAfter(dead) {
  const making = ["sandbox_create", "snapshot_restore", "snapshot_capture"];
  const saved = linesOf(dead).filter(({ type }) => type === "op");
  for (const { reference } of saved.filter((each) => making.includes(each.reference.operation))) {
    if (next() < 0.3) continue;
    try {
      const found = await clients.any(next).recover(reference);
      const onSubmit = (operation) => log.write("op", { reference: operation });
      await found.sandbox?.destroy({ onSubmit });
      await found.snapshot?.delete({ onSubmit });
    } catch (error) {
      log.write("end", { kind: "clean", code: error.code });
    }
  }
}
