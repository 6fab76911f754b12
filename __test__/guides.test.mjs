/** Every snippet of the guides runs against the simulator, and prints what the guide says. */

import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { filesBelow } from "../scripts/files.mjs";
import { KEY, runloopClient, simulator } from "./support/runloop.mjs";
import { moduleOf, otherBlocksOf, recorder, runInShell, snippetsOf } from "./support/snippets.mjs";

/** Guides lie in docs/ itself; what is below is for maintainers. */
const atTheTop = (file) => path.dirname(file) === "docs";

const guides = [
  "README.md",
  "CONTRIBUTING.md",
  "simulator/README.md",
  ...filesBelow("docs", (name) => name.endsWith(".md")).filter(atTheTop),
];

for (const guide of guides) {
  const snippets = snippetsOf(guide);
  if (snippets.length === 0) continue;
  test(`[R2] every snippet of ${guide} runs (${snippets.length})`, async (t) => {
    const { client, service } = await runloopClient(t, { config: { network: "internet" } });
    process.env.RUNLOOP_BASE_URL = service.url;
    process.env.RUNLOOP_API_KEY = KEY;
    t.after(() => {
      delete process.env.RUNLOOP_BASE_URL;
      delete process.env.RUNLOOP_API_KEY;
    });
    const box = await client.sandboxes.create();
    const saved = new Map();
    const program = {
      client,
      box,
      save: async (name, value) => void saved.set(name, JSON.stringify(value)),
      load: async (name) => JSON.parse(saved.get(name)),
    };
    for (const snippet of snippets) {
      const output = recorder();
      const where = `${guide}:${snippet.line}`;
      const run = await moduleOf(snippet);
      try {
        await run({ ...program, console: output.console });
      } catch (error) {
        throw new Error(`${where} failed`, { cause: error });
      }
      if (snippet.prints !== undefined) assert.equal(output.printed, snippet.prints, where);
    }
  });
}

for (const guide of guides) {
  const blocks = otherBlocksOf(guide).filter(({ info }) => info === "sh");
  if (blocks.length === 0) continue;
  test(`[R2] every shell snippet of ${guide} runs (${blocks.length})`, async (t) => {
    const service = await simulator(t);
    const env = { RUNLOOP_BASE_URL: service.url, RUNLOOP_API_KEY: KEY };
    for (const { line, code } of blocks) {
      await runInShell(code, env).catch((error) => {
        throw new Error(`${guide}:${line} ${error.message}`);
      });
    }
  });
}

test("every block of the guides has a language, JSON is JSON, and what is not run says why", () => {
  const known = /^(?:text|json|sh|(?:js|sh|rust|ts) not run: \S.*)$/;
  for (const { document, line, info, code } of guides.flatMap(otherBlocksOf)) {
    assert.match(info, known, `${document}:${line}`);
    if (info === "json") JSON.parse(code);
  }
});
