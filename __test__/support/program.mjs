/** Runs a program on the runtime that runs the tests. */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { keep } from "./suite-log.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const preloadFlag = typeof Bun === "undefined" ? "--import" : "--preload";

/** `args` as after `node`; `preload` modules are loaded first. */
export async function program(
  args,
  { env = {}, preload = [], timeout = 60_000, runtime = process.execPath } = {},
) {
  const flags = preload.flatMap((file) => [preloadFlag, file]);
  const child = spawn(runtime, [...flags, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout,
  });
  const shown = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) {
    child[stream].setEncoding("utf8").on("data", (text) => {
      shown[stream] += text;
    });
  }
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (...ended) => resolve(ended));
  });
  keep(`${shown.stdout}${shown.stderr}`);
  return { code, signal, ...shown };
}
