import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import test from "node:test";
import { filesBelow, root } from "../scripts/files.mjs";

const read = (file) => readFileSync(`${root}/${file}`, "utf8");

test("[R2] the first example of the README is examples/quickstart.mjs, for users who have no workspace", () => {
  const [, first] = /```js\n([\s\S]*?)```/.exec(read("README.md"));
  const quickstart = read("examples/quickstart.mjs");
  assert.equal(first, quickstart.replace('from "beachside"', 'from "@beachside/runloop/client"'));
});

test("no JavaScript that is shipped names a network module or fetch", () => {
  const shipped = [
    "index.js",
    "index.mjs",
    "client/index.mjs",
    ...filesBelow("loader", (name) => name.endsWith(".js")),
    ...filesBelow("client/src", (name) => name.endsWith(".ts")),
  ].filter((file) => existsSync(`${root}/${file}`));
  assert.ok(shipped.length > 20);
  const network =
    /(?:from|require\(|import\()\s*["'](?:node:)?(?:https?|http2|net|tls|dgram|undici|node-fetch)["']|(?<![.\w])fetch\(|\bWebSocket\(|\bEventSource\(/;
  for (const file of shipped) assert.doesNotMatch(read(file), network, file);
  const { dependencies, peerDependencies } = JSON.parse(read("package.json"));
  assert.equal(dependencies, undefined);
  assert.equal(peerDependencies, undefined);
});

test("[R34] the guide to features names every feature that Runloop lacks, and no other", () => {
  const lacked = [
    ...read("src/config/features.rs").matchAll(/^ {4}\(?\s*"([a-z]+\.[A-Za-z]+)",/gm),
  ];
  const [, table] = /not supported on Runloop([\s\S]*)/i.exec(read("docs/features.md"));
  const named = [...table.matchAll(/`([a-z]+\.[A-Za-z]+)`/g)];
  const names = (found) => found.map(([, name]) => name).sort();
  assert.ok(lacked.length > 15);
  assert.deepEqual(names(named), names(lacked));
});

test("the guide to errors has a line for every code, and no other", () => {
  const [, codes] = /ERROR_CODES = \[([^\]]*)\]/.exec(read("client/src/errors.ts"));
  const named = [...read("docs/errors.md").matchAll(/^\| `([A-Z_]+)` \|/gm)];
  assert.deepEqual(
    named.map(([, code]) => code),
    codes.match(/[A-Z_]+/g),
  );
});

test("every link of a document to a file of the repository leads somewhere", () => {
  const documents = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    ...filesBelow("docs", (name) => name.endsWith(".md")),
  ];
  const paths =
    /`((?:client|src|simulator|docs|npm|examples|scripts|__test__|tests|loader)\/[\w./-]*)`/g;
  const missing = [];
  for (const document of documents) {
    for (const [, path] of read(document).matchAll(paths)) {
      if (/[A-Z]{4}/.test(path)) continue; // a placeholder, such as RESOURCE
      try {
        read(path.replace(/\/$/, ""));
      } catch (error) {
        if (error.code !== "EISDIR") missing.push(`${document}: ${path}`);
      }
    }
  }
  assert.deepEqual(missing, []);
});
