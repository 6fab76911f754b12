/** A script in a process of its own, on the runtime of the test. */

import { spawn } from "node:child_process";

/** Runs `script` to its end and gives what it printed and how it ended. */
export async function runScript(script, args = [], { env = {}, flags = [] } = {}) {
  const started = Date.now();
  const child = spawn(process.execPath, [...flags, script, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 100_000,
  });
  const printed = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) {
    child[stream].setEncoding("utf8").on("data", (text) => {
      printed[stream] += text;
    });
  }
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (...ended) => resolve(ended));
  });
  return { code, signal, ...printed, milliseconds: Date.now() - started };
}
