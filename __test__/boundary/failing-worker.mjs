import { parentPort } from "node:worker_threads";
import { BeachsideError } from "../../index.mjs";
import { fail, rejection } from "./hooks.mjs";

async function theCaller() {
  return await fail();
}
const error = await rejection(theCaller());
parentPort.postMessage({
  ours: error instanceof BeachsideError,
  code: error.code,
  caller: /theCaller/.test(error.stack),
});
