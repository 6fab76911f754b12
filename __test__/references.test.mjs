import assert from "node:assert/strict";
import test from "node:test";
import { validateOperationReference, validateResourceReference } from "beachside";
import { times } from "./support/scale.mjs";

const sandbox = () => ({
  version: 1,
  kind: "sandbox",
  provider: "memory",
  scope: { account: "acct_1" },
  id: "sandbox_1",
  ownership: { state: "created", operation: "op-1", submission: "sub-1" },
  mounts: [],
});
const operation = () => ({
  version: 1,
  kind: "operation",
  provider: "memory",
  scope: { account: "acct_1" },
  operation: "sandbox_destroy",
  operationId: "op-1",
  submissionId: "sub-1",
  submittedAt: "2026-11-30T12:00:00.000Z",
  target: sandbox(),
});

/** A copy with one field changed, by its dotted path; `undefined` removes it. */
function changed(reference, path, value) {
  const copy = structuredClone(reference);
  const keys = path.split(".");
  const last = keys.pop();
  const parent = keys.reduce((at, key) => at[key], copy);
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}

test("[V15] a valid reference of every kind passes, and comes back as a frozen copy", () => {
  const base = sandbox();
  const { mounts, ...bare } = base;
  const mount = { volume: "vol_1", path: "/mnt/a", subpath: "b", readOnly: false };
  const valid = [
    base,
    { ...base, mounts: "unknown" },
    { ...base, mounts: [mount] },
    { ...base, ownership: { state: "unknown" } },
    { ...base, kind: "snapshot" },
    { ...bare, kind: "volume" },
    { ...bare, kind: "process", sandbox: "sandbox_1" },
  ];
  for (const reference of valid) {
    const copy = validateResourceReference(reference);
    assert.deepEqual(copy, reference);
    assert.notEqual(copy, reference);
    assert.ok(
      Object.isFrozen(copy) && Object.isFrozen(copy.scope) && Object.isFrozen(copy.ownership),
    );
    assert.deepEqual(validateResourceReference(JSON.parse(JSON.stringify(copy))), reference);
  }
  assert.deepEqual(validateOperationReference(operation()), operation());
});

test("[V16] each missing field of a reference is refused by its name", () => {
  const paths = [
    "version",
    "kind",
    "provider",
    "scope",
    "scope.account",
    "id",
    "ownership",
    "ownership.state",
    "ownership.operation",
    "ownership.submission",
    "mounts",
  ];
  for (const path of paths) {
    assert.throws(
      () => validateResourceReference(changed(sandbox(), path, undefined)),
      (error) => error.code === "INVALID_ARGUMENT" && error.message.includes(`reference.${path}`),
      path,
    );
  }
  for (const path of [
    "operation",
    "operationId",
    "submissionId",
    "submittedAt",
    "target",
    "target.id",
  ]) {
    assert.throws(
      () => validateOperationReference(changed(operation(), path, undefined)),
      (error) => error.code === "INVALID_ARGUMENT" && error.message.includes(`reference.${path}`),
      path,
    );
  }
});

test("[V16] wrong, unknown and inconsistent fields of a reference are refused by their names", () => {
  const wrong = [
    ["version", 2, /reference\.version is 2: it was made by a newer version/],
    ["version", "1", /reference\.version must be 1, not "1"/],
    ["kind", "sandbix", /reference\.kind must be one of sandbox, snapshot, volume, process/],
    ["kind", "constructor", /reference\.kind must be one of/],
    ["kind", "operation", /give operation references to client\.recover/],
    ["provider", "", /reference\.provider must not be empty/],
    ["provider", 7, /reference\.provider must be a string, not 7/],
    ["scope", "acct_1", /reference\.scope must be an object/],
    ["scope.acount", "x", /reference\.scope has an unknown field "acount"; the nearest.*"account"/],
    ["id", "a\0b", /reference\.id holds a control character/],
    ["id", "\ud800", /reference\.id holds a control character/],
    ["id", "x".repeat(1025), /reference\.id is longer than 1024/],
    ["sandbox", "sandbox_1", /unknown field "sandbox"/],
    ["ownership.state", "maybe", /reference\.ownership\.state must be "created" or "unknown"/],
    [
      "ownership.state",
      "unknown",
      /ownership\.operation is inconsistent with reference\.ownership\.state/,
    ],
    ["mounts", "none", /reference\.mounts must be an array/],
    ["mounts", [{}], /reference\.mounts\[0\]\.volume is missing/],
    [
      "mounts",
      [{ volume: "v", path: "/a", readOnly: 1 }],
      /mounts\[0\]\.readOnly must be a boolean/,
    ],
  ];
  for (const [path, value, message] of wrong) {
    assert.throws(
      () => validateResourceReference(changed(sandbox(), path, value)),
      { code: "INVALID_ARGUMENT", message },
      path,
    );
  }
  const inconsistent = [
    ["kind", "sandbox", /reference\.kind must be "operation"/],
    ["operation", "toString", /reference\.operation is not a known operation/],
    ["submittedAt", "yesterday", /submittedAt must be a time in ISO 8601/],
    ["submittedAt", "30 Nov 2026 12:00:00", /submittedAt must be a time in ISO 8601/],
    ["submittedAt", "2026-11-30T12:00:00.000Z ", /submittedAt must be a time in ISO 8601/],
    ["submittedAt", "2026-19-30T12:00:00Z", /submittedAt must be a time in ISO 8601/],
    ["target.provider", "other", /target\.provider differs from reference\.provider/],
    ["target.scope.account", "other", /target\.scope\.account differs/],
    ["target", 7, /reference\.target must be an object/],
    ["operation", "snapshot_delete", /target is inconsistent.*must be a snapshot, not a sandbox/],
    ["operation", "sandbox_create", /target is inconsistent.*must be left out, not a sandbox/],
  ];
  for (const [path, value, message] of inconsistent) {
    assert.throws(
      () => validateOperationReference(changed(operation(), path, value)),
      { code: "INVALID_ARGUMENT", message },
      path,
    );
  }
});

test("[V15] what is not an object at all is refused with a hint", () => {
  assert.throws(() => validateResourceReference(JSON.stringify(sandbox())), /JSON\.parse/);
  for (const value of [null, undefined, 1, [], new Map()]) {
    assert.throws(() => validateResourceReference(value), /must be a plain object/);
  }
});

test("[V32] mounts that are too long for a saved reference are refused, and the limit is stated", () => {
  const mount = (index) => ({
    volume: `vol_${index}`,
    path: `/mnt/${"x".repeat(200)}${index}`,
    readOnly: true,
  });
  const mounts = Array.from({ length: 100 }, (_, index) => mount(index));
  assert.throws(
    () => validateResourceReference({ ...sandbox(), mounts }),
    /longer than 16384 bytes/,
  );
});

/** Numbers from 0 to 1 that are the same for the same seed. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test("[V16] whatever is changed in a reference, it is a copy of a whole one or INVALID_ARGUMENT", () => {
  const seed = Number(process.env.TEST_SEED ?? 20261130);
  const next = random(seed);
  const pick = (choices) => choices[Math.floor(next() * choices.length)];
  const cyclic = {};
  cyclic.self = cyclic;
  let deep = "x";
  for (let depth = 0; depth < 10_000; depth++) deep = [deep];
  const values = [
    ...[null, undefined, true, 0, -1, 1e308, Number.NaN, 2n, "", "x", "a\0b", "\ud800", "\r\n"],
    ...[
      "x".repeat(100_000),
      [],
      {},
      [[]],
      cyclic,
      deep,
      Symbol("s"),
      () => {},
      new Date(0),
      new Map(),
    ],
    Object.create({ version: 1 }),
    JSON.parse('{"__proto__": {"state": "created"}}'),
  ];
  const names = ["__proto__", "constructor", "toString", "more", "Version", "id ", "0"];
  const places = (value, path = []) =>
    typeof value !== "object" || value === null
      ? [path]
      : [path, ...Object.keys(value).flatMap((key) => places(value[key], [...path, key]))];
  const count = times(3000);
  let accepted = 0;
  for (let round = 0; round < count; round++) {
    const [make, check] = pick([
      [sandbox, validateResourceReference],
      [operation, validateOperationReference],
    ]);
    const reference = make();
    const path = pick(places(reference).filter((each) => each.length > 0));
    const parent = path.slice(0, -1).reduce((at, key) => at[key], reference);
    const action = Math.floor(next() * 3);
    if (action === 0) delete parent[path.at(-1)];
    else if (action === 1) parent[path.at(-1)] = pick(values);
    else Object.defineProperty(parent, pick(names), { value: pick(values), enumerable: true });
    try {
      const copy = check(reference);
      assert.deepEqual(JSON.parse(JSON.stringify(copy)), JSON.parse(JSON.stringify(reference)));
      accepted += 1;
    } catch (error) {
      if (error.code === "ERR_ASSERTION") throw error;
      assert.equal(error.code, "INVALID_ARGUMENT", `seed ${seed}, round ${round}: ${error}`);
      assert.ok(error.message.length < 1000, `round ${round}: ${error.message.length} characters`);
    }
  }
  assert.ok(accepted > 0 && accepted < count / 4, `${accepted} of ${count}`);
  assert.equal({}.state, undefined);
});

/** The least CPU time of a few runs, in ms. */
function fastest(run) {
  const spent = Array.from({ length: 7 }, () => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...spent);
}

test("[V16] checking a reference takes time in proportion to its size, whatever makes it large", () => {
  const mount = { volume: "v", path: "/p", readOnly: true };
  const inputs = {
    "a long id": (size) => ({ ...sandbox(), id: "x".repeat(size * 100) }),
    "a long unknown name": (size) => ({ ...sandbox(), ["i".repeat(size * 20)]: 1 }),
    "many unknown fields": (size) => ({
      ...sandbox(),
      ...Object.fromEntries(Array.from({ length: size }, (_, index) => [`id${index}`, index])),
    }),
    "many mounts": (size) => ({ ...sandbox(), mounts: Array.from({ length: size }, () => mount) }),
    "a long time": (size) => ({
      ...operation(),
      submittedAt: `2026-11-30${" ".repeat(size * 100)}`,
    }),
  };
  for (const [name, make] of Object.entries(inputs)) {
    const [small, large] = [make(1000), make(8000)].map((reference) =>
      fastest(() => {
        const check =
          reference.kind === "operation" ? validateOperationReference : validateResourceReference;
        assert.throws(() => check(reference), { code: "INVALID_ARGUMENT" });
      }),
    );
    // Twice the growth of the input and 20 ms for a busy machine; quadratic would be 64 times.
    assert.ok(large <= 16 * small + 20, `${name}: ${small} ms became ${large} ms`);
  }
});
