/** The cells of docs/design/outcomes.md: mutations, fault points, and how to run one. */

import { connect } from "./runloop.mjs";

/** Polls of a Devbox's status, by which most mutations are waited for. */
const box_status = { method: "POST", path: "/v1/devboxes/*/wait_for_status" };
const snapshot_status = { method: "GET", path: "/v1/devboxes/disk_snapshots/*/status" };
const exit_status = { method: "POST", path: "/v1/devboxes/*/executions/*/wait_for_status" };

/**
 * How each mutation is prepared and sent, on which route it goes out, and by
 * which requests it is waited for, if it is. `settings` are the simulator's,
 * `config` the client's.
 */
export const mutations = {
  sandbox_create: {
    route: "/v1/devboxes",
    wait: box_status,
    prepare: async ({ client }) => client,
    send: (client, options) => client.sandboxes.create(options),
  },
  snapshot_restore: {
    route: "/v1/devboxes",
    wait: box_status,
    prepare: async ({ snapshot }) => snapshot,
    send: (snapshot, options) => snapshot.restore(options),
  },
  snapshot_capture: {
    route: "/v1/devboxes/*/snapshot_disk_async",
    wait: snapshot_status,
    prepare: async ({ box }) => box,
    send: (box, options) => box.snapshot(options),
  },
  snapshot_delete: {
    route: "/v1/devboxes/disk_snapshots/*/delete",
    // The first look is made before the deletion.
    wait: { ...snapshot_status, after: 1 },
    prepare: async ({ box }) => (await box.snapshot()).snapshot,
    send: (snapshot, options) => snapshot.delete(options),
  },
  sandbox_suspend: {
    route: "/v1/devboxes/*/suspend",
    wait: box_status,
    prepare: ({ client }) => client.sandboxes.create(),
    send: (box, options) => box.suspend(options),
  },
  sandbox_resume: {
    route: "/v1/devboxes/*/resume",
    wait: box_status,
    async prepare({ client }) {
      const box = await client.sandboxes.create();
      await box.suspend();
      return box;
    },
    send: (box, options) => box.resume(options),
  },
  sandbox_destroy: {
    route: "/v1/devboxes/*/shutdown",
    wait: box_status,
    prepare: ({ client }) => client.sandboxes.create(),
    send: (box, options) => box.destroy(options),
  },
  exec: {
    route: "/v1/devboxes/*/execute",
    prepare: async ({ box }) => box,
    send: (box, options) => box.exec("echo x >> ran", { timeoutSeconds: 20, ...options }),
  },
  "exec (longer than its first answer)": {
    route: "/v1/devboxes/*/execute",
    wait: exit_status,
    settings: { optimistic_max_seconds: 0.02 },
    prepare: async ({ box }) => box,
    send: (box, options) => box.exec("echo x >> ran; sleep 0.1", { timeoutSeconds: 1, ...options }),
  },
  process_start: {
    route: "/v1/devboxes/*/execute",
    prepare: async ({ box }) => box,
    send: (box, options) => box.processes.start({ command: "echo x >> ran", ...options }),
  },
  "process_start (ids of the service's own)": {
    route: "/v1/devboxes/*/execute",
    settings: { execution_id_is_command_id: false },
    prepare: async ({ box }) => box,
    send: (box, options) => box.processes.start({ command: "echo x >> ran", ...options }),
  },
  process_terminate: {
    route: "/v1/devboxes/*/executions/*/kill",
    wait: exit_status,
    config: { timeouts: { stopSeconds: 1 } },
    prepare: ({ box }) => box.processes.start({ command: "exec sleep 300" }),
    send: (process, options) => process.terminate(options),
  },
  "sandbox_create (its network policy)": {
    route: "/v1/network-policies",
    // A policy is made once in an account.
    async prepare({ t, service, account }) {
      const apiKey = `ak_account_${account.next}`;
      account.key = apiKey;
      await service.control("POST", "/accounts", { id: `acc_${account.next++}`, api_key: apiKey });
      return connect(t, service, { apiKey });
    },
    send: (client, options) => client.sandboxes.create(options),
  },
  file_write: {
    route: "/v1/devboxes/*/execute",
    prepare: async ({ box }) => box,
    send: (box, options) =>
      box.writeFile("/home/user/written", "small", { overwrite: true, ...options }),
  },
  "file_write (upload)": {
    route: "/v1/devboxes/*/upload_file",
    prepare: async ({ box }) => box,
    send: (box, options) =>
      box.writeFile("/home/user/written", "x".repeat(300_000), { overwrite: true, ...options }),
  },
};

/**
 * What is done to the mutation's own request, or, where it is `waiting`, to a
 * poll for its result (to all of them: `lasting`). `cancel`: the caller's
 * signal aborts meanwhile.
 */
export const faults = {
  "request lost": { action: { type: "drop_request" } },
  "acted, reply lost": { action: { type: "drop_reply" } },
  "acted, 502": { action: { type: "replace_reply", status: 502 } },
  "not acted, 500": { action: { type: "refuse", status: 500 } },
  "refused, 422": { action: { type: "refuse", status: 422 } },
  "conflict, 409": { action: { type: "refuse", status: 409 } },
  "timeout, 408": { action: { type: "refuse", status: 408 } },
  "rate limited, 429": { action: { type: "rate_limit" } },
  "acted, reply cut": { action: { type: "truncate_reply", bytes: 10 } },
  "acted, reply malformed": { action: { type: "halve_reply" } },
  "acted, cancelled": { action: { type: "hold_reply" }, cancel: true },
  "wait cut once": { action: { type: "drop_reply" }, waiting: true },
  "wait cut for good": { action: { type: "drop_reply" }, waiting: true, lasting: true },
  "wait cancelled": { action: { type: "hold_reply" }, waiting: true, cancel: true },
};

/**
 * Runs one cell: the caller's error (`undefined` for a success), how often the
 * mutation's route was asked, and what recovery says to another process.
 */
export async function cell(t, world, mutationName, faultName) {
  const { service } = world;
  const mutation = mutations[mutationName];
  const fault = faults[faultName];
  const subject = await mutation.prepare(world);
  const { id } = await service.fault({
    match: {
      ...(fault.waiting ? mutation.wait : { method: "POST", path: mutation.route }),
      ...(fault.lasting ? {} : { count: 1 }),
    },
    action: fault.action,
  });
  await service.clearJournal();
  const controller = new AbortController();
  const saved = [];
  const sending = mutation.send(subject, {
    signal: controller.signal,
    onSubmit: (reference) => saved.push(JSON.stringify(reference)),
  });
  if (fault.cancel) {
    const cancelling = arrived(service, id).then(() => controller.abort());
    await Promise.all([cancelling, sending.catch(() => {})]);
  }
  const error = await sending.then(
    () => undefined,
    (each) => each,
  );
  const { entries } = await service.journal();
  await service.control("DELETE", "/faults");
  const route = new RegExp(`^${mutation.route.replaceAll("*", "[^/]+")}$`);
  const sent = entries.filter((each) => each.method === "POST" && route.test(each.path));
  const other = await connect(t, service, { apiKey: world.account.key });
  const recovery = await settled(other, JSON.parse(saved[0]));
  return { error, sent: sent.length, recovery };
}

/** Recovery, after what is in progress has come to its end. */
async function settled(client, operation) {
  let recovery = await client.recover(operation);
  while (recovery.status === "in_progress") recovery = await recovery.continue();
  return recovery;
}

/** Resolves when the rule has acted on a request. */
async function arrived(service, id) {
  for (;;) {
    const { entries } = await service.journal();
    if (entries.some((each) => each.faults.includes(id))) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
