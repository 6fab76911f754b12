/**
 * What the types promise: each entry point exports at run time what it
 * declares, and every example in the documentation comments compiles.
 */

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import test from "node:test";
import ts from "typescript";
import { filesBelow, root } from "../scripts/files.mjs";

const require = createRequire(import.meta.url);

const OPTIONS = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
  types: ["node"],
  strict: true,
  noEmit: true,
};

const ENTRIES = {
  "@beachside/runloop": ["index.d.mts", "index.d.ts"],
  "@beachside/runloop/client": ["client/index.d.mts", "client/dist/index.d.ts"],
  "@beachside/runloop/testing": ["client/testing.d.mts", "client/dist/testing/index.d.ts"],
};

const at = (file) => path.join(root, file);
const declarations = ts.createProgram(Object.values(ENTRIES).flat().map(at), OPTIONS);

function declared(file) {
  const checker = declarations.getTypeChecker();
  const module = checker.getSymbolAtLocation(declarations.getSourceFile(at(file)));
  return checker
    .getExportsOfModule(module)
    .filter((symbol) => {
      const alias = symbol.flags & ts.SymbolFlags.Alias;
      if (alias && checker.getTypeOnlyAliasDeclaration?.(symbol)) return false;
      return (alias ? checker.getAliasedSymbol(symbol) : symbol).flags & ts.SymbolFlags.Value;
    })
    .map(({ name }) => name)
    .sort();
}

for (const [entry, [esm, cjs]] of Object.entries(ENTRIES)) {
  test(`[R1] ${entry} exports what it declares, to import and to require`, async () => {
    const imported = Object.keys(await import(entry)).sort();
    assert.ok(imported.length > 0);
    assert.deepEqual(
      imported.filter((name) => name !== "default" && name !== "module.exports"),
      valuesOf(esm),
    );
    assert.deepEqual(
      Object.keys(require(entry))
        .filter((name) => name !== "__esModule")
        .sort(),
      valuesOf(cjs),
    );
  });
}

/** Names that are values: a class that is exported as a type only is none. */
function valuesOf(file) {
  const types = typeOnly(file);
  return declared(file).filter((name) => !types.has(name));
}

function typeOnly(file, seen = new Set()) {
  if (seen.has(file)) return new Set();
  seen.add(file);
  const found = new Set();
  const values = new Set();
  const source = declarations.getSourceFile(file.startsWith(root) ? file : at(file));
  source?.forEachChild((node) => {
    if (!ts.isExportDeclaration(node)) return;
    const clause = node.exportClause;
    if (clause !== undefined && ts.isNamedExports(clause)) {
      for (const each of clause.elements) {
        (node.isTypeOnly || each.isTypeOnly ? found : values).add(each.name.text);
      }
    } else if (node.isTypeOnly) {
      for (const name of exportsOf(node)) found.add(name);
    } else {
      const target = resolved(node);
      for (const name of typeOnly(target, seen)) found.add(name);
    }
  });
  return new Set([...found].filter((name) => !values.has(name)));
}

function resolved(node) {
  const checker = declarations.getTypeChecker();
  return checker.getSymbolAtLocation(node.moduleSpecifier).declarations[0].getSourceFile().fileName;
}

function exportsOf(node) {
  const checker = declarations.getTypeChecker();
  const module = checker.getSymbolAtLocation(node.moduleSpecifier);
  return checker.getExportsOfModule(module).map(({ name }) => name);
}

test("every example in the documentation comments compiles", () => {
  const examples = [
    "index.d.ts",
    ...filesBelow("client/src", (name) => name.endsWith(".ts")),
  ].flatMap((file) => examplesOf(file, ts.sys.readFile(at(file))));
  assert.ok(examples.length >= 15, `${examples.length} examples`);
  const files = new Map(examples.map(({ name, code }) => [at(name), code]));
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (file) => files.has(path.resolve(file)) || fileExists(file);
  host.getSourceFile = (file, ...rest) => {
    const code = files.get(path.resolve(file));
    return code === undefined
      ? getSourceFile(file, ...rest)
      : ts.createSourceFile(file, code, rest[0]);
  };
  // Not strict about null: an example shows a call, not every branch.
  const program = ts.createProgram([...files.keys()], { ...OPTIONS, strict: false }, host);
  const mistakes = ts.getPreEmitDiagnostics(program).map((diagnostic) => {
    const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n");
    return `${path.relative(root, diagnostic.file?.fileName ?? "")}: ${text}`;
  });
  assert.deepEqual(mistakes, []);
});

/** Each fenced example, in a function that has what examples take for granted. */
function examplesOf(file, text) {
  return [...text.matchAll(/^( *)\* ```(?:js|ts)\n([\s\S]*?)^ *\* ```$/gm)].map(
    ([, , lines], index) => {
      const example = lines.replace(/^ *\* ?/gm, "").split("\n");
      const imports = example.filter((line) => line.startsWith("import "));
      const body = example.filter((line) => !imports.includes(line)).join("\n");
      const names = ["client", "box", "process", "snapshot", "volume", "connection"];
      const taken = names.filter((name) =>
        new RegExp(`\\b(?:const|let) (?:\\{[^}]*\\b)?${name}\\b`).test(body),
      );
      if (body.includes("process.env")) taken.push("process");
      const given = names.filter((name) => !taken.includes(name) && name in GIVEN);
      const code = [
        ...imports,
        'import { runloop, runloopAdapter } from "@beachside/runloop";',
        'import * as beachside from "@beachside/runloop/client";',
        "const { Beachside, BeachsideError, Image, isBeachsideError, Preserve, UnsupportedFeatureError } = beachside;",
        "type UnsupportedFeatureError = beachside.UnsupportedFeatureError;",
        "declare const apiKey: string;",
        "declare function connect(): Promise<beachside.BeachsideClient>;",
        "declare function saveSomewhere(reference: beachside.OperationReference): void;",
        `export async function example(${given.map((name) => `${name}: beachside.${GIVEN[name]}`).join(", ")}) {`,
        body,
        "}",
        "void [runloop, runloopAdapter, Beachside, BeachsideError, Image, isBeachsideError, Preserve];",
      ].join("\n");
      return { name: `${file.replaceAll("/", "-")}.example-${index}.mts`, code };
    },
  );
}

const GIVEN = {
  client: "BeachsideClient",
  box: "SandboxHandle",
  process: "ProcessHandle",
  snapshot: "SnapshotHandle",
  volume: "VolumeHandle",
};
