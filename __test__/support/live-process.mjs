/** What another Node process does with a saved process: see live-processes.test.mjs. */

import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const { RUNLOOP_API_KEY: apiKey, RUNLOOP_BASE_URL: baseUrl, SAVED } = process.env;
const saved = JSON.parse(SAVED);
const client = await Beachside.connect(runloop({ apiKey, baseUrl, network: "internet" }));
const box = await client.sandboxes.get(saved.box);
const options = saved.stdout === undefined ? {} : { stdoutOffset: saved.stdout };
const opened = await box.processes.get(saved.process, options);

const actions = {
  /** Reads on for a while, then ends it and everything of ours. */
  async reopen() {
    let text = "";
    for await (const piece of opened.stdout) {
      text += piece;
      if (text.split("\n").length > 8) break;
    }
    process.stdout.write(text.slice(0, text.lastIndexOf("\n") + 1));
    process.exitCode = (await opened.terminate()).exitCode;
    await client.close();
  },
  async wait() {
    process.exitCode = (await opened.wait()).exitCode;
  },
  async unread() {
    process.stdout.write("open\n");
  },
  async unfinished() {
    const iterator = opened.stdout[Symbol.asyncIterator]();
    process.stdout.write((await iterator.next()).value);
  },
};
await actions[process.argv[2]]();
