/** Contract: what is not supported says so beforehand, and rejects before anything is sent. */

import type { BeachsideClient } from "../beachside.js";
import { capability, type Feature } from "../capabilities.js";
import type { SandboxHandle } from "../sandbox-handle.js";
import { contractCase, refuses } from "./case.js";

type OfClient = (client: BeachsideClient) => PromiseLike<unknown>;
type OfSandbox = (sandbox: SandboxHandle) => PromiseLike<unknown>;

const onClient: { readonly [F in Feature]?: readonly OfClient[] } = {
  "sandboxes.list": [(client) => client.sandboxes.list()],
  "sandboxes.labels": [(client) => client.sandboxes.create({ labels: { job: "ci" } })],
  "sandboxes.regions": [(client) => client.sandboxes.create({ region: "eu" })],
  "network.blocked": [(client) => client.sandboxes.create({ network: "blocked" })],
  "network.internet": [(client) => client.sandboxes.create({ network: "internet" })],
  "network.allow": [(client) => client.sandboxes.create({ network: { allow: ["example.com"] } })],
  "snapshots.list": [(client) => client.snapshots.list()],
  "volumes.create": [
    (client) => client.volumes.create({ name: "a" }),
    (client) => client.volumes.submitCreate({ name: "a" }),
  ],
  "volumes.get": [(client) => client.volumes.get(someVolume(client))],
  "volumes.list": [(client) => client.volumes.list()],
  "volumes.mount": [
    (client) =>
      client.sandboxes.create({
        mounts: [{ volume: someVolume(client), path: "/mnt/a", readOnly: false }],
      }),
  ],
};

const onSandbox: { readonly [F in Feature]?: readonly OfSandbox[] } = {
  "sandboxes.suspend": [(box) => box.suspend()],
  "sandboxes.resume": [(box) => box.resume()],
  "sandboxes.renew": [(box) => box.renew()],
  "sandboxes.terminal": [(box) => box.terminal()],
  "sandboxes.fork": [(box) => box.fork(), (box) => box.submitFork()],
  "exec.run": [(box) => box.exec("true")],
  "exec.callbacks": [
    (box) => box.exec("true", { onStdout() {} }),
    (box) => box.exec("true", { onStderr() {} }),
  ],
  "processes.stream": [(box) => box.processes.start({ command: "true" })],
  "processes.bytes": [
    (box) => box.processes.start({ command: "true", output: { mode: "stream", format: "bytes" } }),
  ],
  "processes.stdin": [(box) => box.processes.start({ command: "true", stdin: "pipe" })],
  "files.read": [(box) => box.readFile("/a"), (box) => box.readTextFile("/a")],
  "files.write": [(box) => box.writeFile("/a", "x", { overwrite: true })],
  "files.writeNew": [
    (box) => box.writeFile("/a", "x"),
    (box) => box.writeFile("/a", "x", { overwrite: false }),
  ],
  "files.list": [(box) => box.files.list("/")],
  "files.mkdir": [(box) => box.files.mkdir("/a")],
  "files.remove": [(box) => box.files.remove("/a")],
  "files.rename": [(box) => box.files.rename("/a", "/b")],
  "previews.open": [(box) => box.preview(3000)],
  "snapshots.capture": [(box) => box.snapshot(), (box) => box.submitSnapshot()],
};

export const refusals = [
  contractCase("every feature that capabilities() calls unsupported rejects with that reason", {
    async run({ client, sandbox }) {
      const tree = await client.capabilities();
      const missing = (feature: string) =>
        capability(tree, feature as Feature).status === "unsupported";
      for (const [feature, calls] of Object.entries(onClient).filter(([each]) => missing(each))) {
        const leaf = capability(tree, feature as Feature);
        for (const call of calls) {
          await refuses(Promise.resolve(call(client)), feature as Feature, leaf);
        }
      }
      const box = await sandbox();
      for (const [feature, calls] of Object.entries(onSandbox).filter(([each]) => missing(each))) {
        const leaf = capability(tree, feature as Feature);
        for (const call of calls)
          await refuses(Promise.resolve(call(box)), feature as Feature, leaf);
      }
    },
  }),
];

/** Good enough where nothing may be sent. */
function someVolume(client: BeachsideClient) {
  return {
    version: 1,
    kind: "volume",
    provider: client.scope.provider,
    scope: { account: client.scope.account },
    id: "contract-volume",
    ownership: { state: "unknown" },
  } as const;
}
