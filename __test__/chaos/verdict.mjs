/**
 * What must be true when everybody has stopped: the service's state and its
 * journal, held against what the client processes logged.
 */

import { Outside } from "../support/box.mjs";
import { state } from "../support/killed.mjs";
import { linesOf } from "./log.mjs";

/** Codes that say that the service did nothing. */
const REFUSALS = ["REJECTED", "CONFLICT", "RATE_LIMITED"];
const MAKING = ["sandbox_create", "snapshot_restore", "snapshot_capture"];

/** Operations that are asked about at most; those whose end is not a plain success come first. */
const MOST_RECOVERED = 400;

const markers = ({ metadata }) => metadata?.beachside_operation;
const count = (map, key) => map.set(key, (map.get(key) ?? 0) + 1);

/** Everything that the processes logged, as one model. */
export function modelOf(files) {
  const model = {
    saved: new Map(),
    ends: new Map(),
    codes: {},
    /** Sandboxes with an operation that a SIGKILL cut off, and with one that did not end plainly. */
    cut: new Set(),
    dirty: new Set(),
    /** What errors named as possibly left in a sandbox. */
    leftovers: [],
    tokens: new Map(),
    contents: new Map(),
    violations: [],
  };
  for (const file of files) {
    for (const line of linesOf(file)) readers[line.type](model, line);
  }
  for (const [id, reference] of model.saved) {
    const end = model.ends.get(id);
    const box = reference.target?.sandbox ?? reference.target?.id;
    if (box === undefined) continue;
    if (end === undefined) model.cut.add(box);
    if (end?.code !== "success" && end?.submitted !== false) model.dirty.add(box);
    model.leftovers.push(...(end?.leftovers ?? []));
  }
  return model;
}

const readers = {
  op: ({ saved }, { reference }) => saved.set(reference.operationId, reference),
  end({ ends, codes }, end) {
    const key = `${end.kind} ${end.code}`;
    codes[key] = (codes[key] ?? 0) + 1;
    if (end.id !== undefined) ends.set(end.id, end);
  },
  run: ({ tokens }, { box, token }) => tokens.set(token, { box, ran: false }),
  ran({ tokens }, { token, isStarted }) {
    tokens.get(token).ran = isStarted !== true;
  },
  may({ contents }, { box, path, ...content }) {
    contents.set(`${box} ${path}`, [...(contents.get(`${box} ${path}`) ?? [null]), content]);
  },
  is: ({ contents }, { box, path, ...content }) => contents.set(`${box} ${path}`, [content]),
  violation: ({ violations }, { what }) => violations.push(what),
};

/** Nothing that the service has is unknown, and nothing was sent twice. */
export async function accounted(service, model, now) {
  const { violations, saved, ends } = model;
  const made = new Map();
  for (const each of [...now.devboxes, ...now.snapshots]) {
    count(made, markers(each));
    if (!saved.has(markers(each))) violations.push(`nobody knows of ${each.id}`);
  }
  for (const [operation, { operation: kind }] of saved) {
    const end = ends.get(operation);
    if (!MAKING.includes(kind) || end === undefined) continue;
    const found = made.get(operation) ?? 0;
    if (found > 1) violations.push(`${kind} made ${found}`);
    const isRefused = REFUSALS.includes(end.code) && (end.sandbox ?? end.snapshot) === undefined;
    const isNothing = isRefused || end.submitted === false;
    if (isNothing && found > 0) violations.push(`${kind} ended with ${end.code}, and was done`);
    const isKept = kind !== "snapshot_capture";
    if (isKept && end.code === "success" && found === 0) violations.push(`${kind} is not there`);
  }
  if (now.policies.length > 1) violations.push(`${now.policies.length} policies`);

  const { entries, dropped } = await service.journal({ method: "POST" });
  if (dropped > 0) violations.push(`the journal let ${dropped} entries go`);
  const creating = new Map();
  const commands = new Map();
  const acting = new Map();
  for (const { path, body } of entries) {
    const verb = path.split("/").at(-1);
    if (/\/v1\/devboxes$|snapshot_disk_async$/.test(path)) count(creating, markers(body ?? {}));
    else if (verb === "execute") count(commands, body?.command_id);
    else if (verb in VERBS) count(acting, `${VERBS[verb]} ${path.split("/").at(-2)}`);
  }
  for (const [operation, sent] of creating) {
    if (sent > 1) violations.push(`a create or capture was sent ${sent} times`);
    if (!saved.has(operation)) violations.push("a create or capture was sent before it was saved");
  }
  for (const [id, sent] of commands) {
    if (sent > 1) violations.push(`command ${id} was sent ${sent} times`);
  }
  const allowed = new Map();
  for (const { operation, target } of saved.values()) count(allowed, `${operation} ${target?.id}`);
  // A sandbox without its network policy is shut down by the create itself.
  for (const end of ends.values()) {
    if (end.code === "PROTOCOL" && end.sandbox) count(allowed, `sandbox_destroy ${end.sandbox}`);
  }
  for (const [what, sent] of acting) {
    // A command past its deadline is killed without an operation of its own.
    if (what.startsWith("process_terminate") && sent <= 2) continue;
    if (sent > (allowed.get(what) ?? 0)) violations.push(`${what} was sent ${sent} times`);
  }
  return { requests: entries.length, faulted: entries.filter((each) => each.faults.length).length };
}

const VERBS = {
  shutdown: "sandbox_destroy",
  suspend: "sandbox_suspend",
  resume: "sandbox_resume",
  delete: "snapshot_delete",
  kill: "process_terminate",
};

/** Another process's recovery says of each operation what the service says. */
export async function recoverable(client, model, now) {
  const { violations, saved, ends } = model;
  const truth = new Map();
  for (const each of [...now.devboxes, ...now.snapshots]) truth.set(markers(each), each.id);
  const isPlain = ({ operationId }) => ends.get(operationId)?.code === "success";
  const asked = [...saved.values()]
    .filter(({ operation }) => MAKING.includes(operation))
    .toSorted((one, other) => isPlain(one) - isPlain(other))
    .slice(0, MOST_RECOVERED);
  const verdicts = {};
  for (const reference of asked) {
    const found = await client.recover(reference);
    verdicts[found.status] = (verdicts[found.status] ?? 0) + 1;
    const id = (found.sandbox ?? found.snapshot)?.reference.id;
    if (id !== truth.get(reference.operationId)) {
      violations.push(
        `${reference.operation} is ${found.status} with ${id}, not ${truth.get(reference.operationId)}`,
      );
    }
  }
  return verdicts;
}

/** Inside the sandboxes that still run: files, commands, and nothing of ours. */
export async function inside(service, model, now) {
  const { violations, tokens, contents, cut, dirty } = model;
  // Looked at without any faithfulness that is in question.
  await service.set({ optimistic_max_seconds: 25, completion_waits_for_output: true });
  const running = now.devboxes.filter(({ status }) => status === "running");
  let clean = 0;
  const told = model.leftovers.map(
    (pattern) => new RegExp(`^${pattern.replaceAll("*", "[^/]*")}$`),
  );
  for (const { id, snapshot_id: snapshot } of running) {
    const outside = new Outside(service, id);
    const seen = new Map();
    for (const token of (await outside.run("cat /home/user/ran 2>/dev/null")).split("\n")) {
      if (token !== "") count(seen, token);
    }
    for (const [token, times] of seen) {
      if (times > 1) violations.push(`command ${token} ran ${times} times`);
    }
    for (const [token, { box, ran }] of tokens) {
      if (box === id && ran && !seen.has(token)) violations.push(`command ${token} did not run`);
    }
    for (const [key, possible] of contents) {
      const [box, path] = key.split(" ");
      if (box !== id) continue;
      const [length, token] = (await outside.run(`wc -c < ${path}; head -c 100 ${path}`)).split(
        "\n",
      );
      const holds = possible.some(
        (each) =>
          (each === null && !length) ||
          (Number(length) === each?.length && token?.startsWith(each.token)),
      );
      if (!holds) violations.push(`${key} holds ${length} bytes of ${token?.slice(0, 50)}`);
    }
    // A restored sandbox has what was left in its source.
    if (cut.has(id) || (snapshot && cut.size > 0)) continue;
    if (!dirty.has(id)) clean += 1;
    for (const left of await outside.litter()) {
      // A command whose end is not known may still run.
      const isKnown = left.startsWith("/proc/")
        ? dirty.has(id)
        : told.some((pattern) => pattern.test(left));
      if (!isKnown) violations.push(`left in ${id}: ${left}`);
    }
  }
  return { running: running.length, clean };
}

/** Cleans by the references alone; then the service has nothing. */
export async function cleaned(client, service, model, now) {
  for (const { id, status, metadata } of now.devboxes) {
    if (["shutdown", "failure"].includes(status)) continue;
    const found = await client.recover(model.saved.get(metadata.beachside_operation));
    if (found.sandbox?.reference.id === id) await found.sandbox.destroy();
  }
  for (const { metadata } of now.snapshots) {
    const found = await client.recover(model.saved.get(metadata?.beachside_operation));
    await found.snapshot?.delete();
  }
  const left = await state(service);
  const live = left.devboxes.filter(({ status }) => !["shutdown", "failure"].includes(status));
  if (live.length + left.snapshots.length > 0) {
    model.violations.push(
      `${live.length} sandboxes and ${left.snapshots.length} snapshots are left`,
    );
  }
}
