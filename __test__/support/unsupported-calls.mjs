/**
 * For each feature, the calls that need it. Used with the in-memory adapter
 * (any feature can be switched off) and with the native one (what it lacks).
 */

const box = ({ client }) => client.sandboxes.create();
const create = (options) => ({ run: (client) => client.sandboxes.create(options) });
const withBox = (run) => ({ prepare: box, run: (_client, sandbox) => run(sandbox) });

/** Restores and deletions need a snapshot; a reference is enough, since nothing may be sent. */
const reference = (kind, { client }, fields) => ({
  version: 1,
  kind,
  provider: client.scope.provider,
  scope: { account: client.scope.account },
  id: `${kind}_x`,
  ownership: { state: "unknown" },
  ...fields,
});
const withSnapshot = (run) => ({
  async prepare({ client }) {
    const source = await client.sandboxes.create();
    return (await source.snapshot()).snapshot;
  },
  run: (_client, snapshot) => run(snapshot),
});
const withVolume = (run) => ({
  prepare: ({ client }) => client.volumes.create({ name: "a" }),
  run: (_client, volume) => run(volume),
});

export const unsupportedCalls = {
  "sandboxes.create": [create({ env: { A: "1" } }), create()],
  "sandboxes.list": [{ run: (client) => client.sandboxes.list() }],
  "sandboxes.suspend": [withBox((each) => each.suspend())],
  "sandboxes.resume": [withBox((each) => each.resume())],
  "sandboxes.renew": [withBox((each) => each.renew())],
  "sandboxes.terminal": [withBox((each) => each.terminal())],
  "sandboxes.labels": [create({ labels: { job: "ci" } })],
  "sandboxes.regions": [create({ region: "eu" })],
  "sandboxes.fork": [withBox((each) => each.fork()), withBox((each) => each.submitFork())],
  "exec.run": [withBox((each) => each.exec("true"))],
  "exec.callbacks": [
    withBox((each) => each.exec("true", { onStdout() {} })),
    withBox((each) => each.exec("true", { onStderr() {} })),
  ],
  "processes.stream": [withBox((each) => each.processes.start({ command: "x" }))],
  "processes.bytes": [
    withBox((each) =>
      each.processes.start({ command: "x", output: { mode: "stream", format: "bytes" } }),
    ),
  ],
  "processes.stdin": [withBox((each) => each.processes.start({ command: "x", stdin: "pipe" }))],
  "processes.reopen": [
    {
      prepare: box,
      run: (client, sandbox) =>
        sandbox.processes.get(reference("process", { client }, { sandbox: sandbox.reference.id })),
    },
  ],
  "processes.kill": [
    {
      prepare: async (client) => (await box(client)).processes.start({ command: "x" }),
      run: (_client, process) => process.kill(),
    },
  ],
  "files.read": [
    withBox((each) => each.readFile("/a")),
    withBox((each) => each.readTextFile("/a")),
  ],
  "files.write": [withBox((each) => each.writeFile("/a", "x", { overwrite: true }))],
  "files.writeNew": [
    withBox((each) => each.writeFile("/a", "x")),
    withBox((each) => each.writeFile("/a", "x", { overwrite: false })),
  ],
  "files.list": [withBox((each) => each.files.list("/"))],
  "files.mkdir": [withBox((each) => each.files.mkdir("/a"))],
  "files.remove": [withBox((each) => each.files.remove("/a"))],
  "files.rename": [withBox((each) => each.files.rename("/a", "/b"))],
  // The image is a setting of the connection: the adapter refuses it at connect.
  "images.prepared": "connect",
  "images.oci": "connect",
  "images.build": "connect",
  "network.blocked": [create({ network: "blocked" })],
  "network.internet": [create({ network: "internet" })],
  "network.allow": [create({ network: { allow: ["example.com"] } })],
  "previews.open": [withBox((each) => each.preview(3000))],
  "snapshots.capture": [
    withBox((each) => each.snapshot()),
    withBox((each) => each.submitSnapshot()),
  ],
  "snapshots.restore": [
    withSnapshot((each) => each.restore()),
    withSnapshot((each) => each.submitRestore()),
  ],
  "snapshots.list": [{ run: (client) => client.snapshots.list() }],
  "snapshots.delete": [
    withSnapshot((each) => each.delete()),
    withSnapshot((each) => each.submitDelete()),
  ],
  "volumes.create": [
    { run: (client) => client.volumes.create({ name: "a" }) },
    { run: (client) => client.volumes.submitCreate({ name: "a" }) },
  ],
  "volumes.get": [{ run: (client) => client.volumes.get(reference("volume", { client })) }],
  "volumes.list": [{ run: (client) => client.volumes.list() }],
  "volumes.delete": [
    withVolume((volume) => volume.delete()),
    withVolume((volume) => volume.submitDelete()),
  ],
  "volumes.mount": [
    {
      run: (client) => {
        const mount = { volume: reference("volume", { client }), path: "/mnt/a", readOnly: false };
        return client.sandboxes.create({ mounts: [mount] });
      },
    },
  ],
  "recovery.sandboxes": [
    {
      prepare: async ({ client }) => (await client.sandboxes.submitCreate()).reference,
      run: (client, operation) => client.recover(operation),
    },
  ],
  "recovery.snapshots": [
    {
      async prepare({ client }) {
        const source = await client.sandboxes.create();
        return (await source.submitSnapshot()).reference;
      },
      run: (client, operation) => client.recover(operation),
    },
  ],
};
