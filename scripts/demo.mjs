/**
 * Starts the simulator on a free port and runs examples/quickstart.mjs against
 * it, on Node and on Bun. Fails unless the example prints what a command in
 * the simulated Devbox printed.
 */

import { spawn } from "node:child_process";
import path from "node:path";
import { startSimulator } from "../__test__/support/simulator.mjs";
import { root } from "./files.mjs";

const EXAMPLE = "examples/quickstart.mjs";
const EXPECTED = "ready\n";

const simulator = await startSimulator();
console.log(`The simulator listens at ${simulator.url}.`);
const env = {
  ...process.env,
  RUNLOOP_BASE_URL: simulator.url,
  RUNLOOP_API_KEY: "ak_demo_key",
};
try {
  for (const [name, command] of [
    ["Node", process.execPath],
    ["Bun", path.join(root, "node_modules/.bin/bun")],
  ]) {
    const printed = await run(command, [EXAMPLE]);
    if (printed !== EXPECTED) {
      throw new Error(`${EXAMPLE} on ${name} printed ${JSON.stringify(printed)}`);
    }
    console.log(`${EXAMPLE} on ${name} printed: ${printed.trim()}`);
  }
} finally {
  await simulator.stop();
}

function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      printed += text;
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) resolve(printed);
      else reject(new Error(`${command} ${args.join(" ")} ended with ${signal ?? code}`));
    });
  });
}
