// The official Python SDK, 3.0.0, as a second and newer witness. `scripts/setup.sh` installs it
// into .cache/python; without it these tests are skipped and say so.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { suite } from "./support/suite.mjs";

const python = fileURLToPath(new URL("../../.cache/python/bin/python", import.meta.url));
const witness = fileURLToPath(new URL("python/witness.py", import.meta.url));
const skip = existsSync(python)
  ? false
  : "the Python SDK is not installed (scripts/setup.sh needs python3 with venv)";

/** Runs the witness; resolves with its exit code and what it printed. */
function run(url) {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, WITNESS_URL: url };
    execFile(python, [witness], { env }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, text: `${stdout}${stderr}` });
    });
  });
}

if (!skip) {
  suite(
    "the Python SDK",
    (c) => {
      test("every test of the Python witness passes", async () => {
        const { code, text } = await run(c.simulator.url);
        assert.equal(code, 0, text);
        assert.match(text, /Ran 12 tests/);
        // What sets this client apart: whole and broken numbers of seconds.
        const polls = await c.sent("/v1/devboxes/", "POST");
        const asked = polls.map((entry) => entry.body?.timeout_seconds).filter(Number.isFinite);
        assert.ok(
          asked.some((seconds) => !Number.isInteger(seconds)),
          `asked for ${asked}`,
        );
        assert.ok(polls.some((entry) => entry.status === 408));
      });
    },
    {
      only: "HTTP/1.1",
      settings: {
        create_hold_seconds: 0,
        boot_ms: 300,
        devbox_hold_max_seconds: 0.2,
        optimistic_max_seconds: 0.5,
        execution_hold_max_seconds: 0.5,
      },
    },
  );
} else {
  test("the Python SDK is a second witness", { skip }, () => {});
}
