/** One call against a hostile service, in a process of its own: what it ends with and what it took. */

import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const { RUNLOOP_API_KEY: apiKey, RUNLOOP_BASE_URL: baseUrl, SANDBOX } = process.env;
const timeouts = { requestSeconds: 0.5, startSeconds: 1, stopSeconds: 1 };
const client = await Beachside.connect(runloop({ apiKey, baseUrl, network: "internet", timeouts }));
const reference = JSON.parse(SANDBOX);
const held = async (run) => {
  const box = await client.sandboxes.get(reference);
  return run(box);
};

const calls = {
  list: () => client.sandboxes.list(),
  get: () => client.sandboxes.get(reference),
  create: () => client.sandboxes.create(),
  exec: () => held((box) => box.exec("true", { timeoutSeconds: 1 })),
  output: () => held((box) => box.exec("head -c 900000 /dev/urandom", { timeoutSeconds: 20 })),
  read: () => held((box) => box.readFile("/tmp/large")),
  destroy: () => held((box) => box.destroy()),
  stream: () =>
    held(async (box) => {
      const command = "echo x; sleep 1";
      const process_ = await box.processes.start({ command, output: { mode: "stream" } });
      let bytes = 0;
      for await (const text of process_.stdout) {
        bytes += text.length;
        if (bytes > 50_000_000) break;
      }
      return (await process_.wait()).output;
    }),
};

let peak = 0;
const look = () => {
  peak = Math.max(peak, process.memoryUsage.rss());
};
look();
const before = peak;
const watch = setInterval(look, 5);
const started = performance.now();
const signal = AbortSignal.timeout(60_000);
const ended = await Promise.race([
  calls[process.argv[2]]().then(
    (value) => ({ value: typeof value === "string" ? value : "a value" }),
    (error) => ({ code: error.code, message: error.message.slice(0, 300) }),
  ),
  new Promise((resolve) => signal.addEventListener("abort", () => resolve({ code: "HANGS" }))),
]);
const seconds = (performance.now() - started) / 1000;
clearInterval(watch);
look();
const grown = Math.round((peak - before) / 1e6);
process.stdout.write(JSON.stringify({ ...ended, seconds, grownMB: grown }), () => process.exit());
