// Compiled, never run: every call of the public surface with the types that it gives back, and misuse of it.

import {
  type BeachsideError,
  Preserve,
  type RunloopConfig,
  type RunloopCredentials,
  type RunloopOptions,
  runloop,
  runloopAdapter,
} from "@beachside/runloop";
import type {
  Adapter,
  BeachsideClient,
  Capabilities,
  CaptureResult,
  CleanupReport,
  DestroyResult,
  ExecResult,
  InventoryItem,
  Operation,
  OperationReference,
  PowerResult,
  Preview,
  ProcessExit,
  ProcessHandle,
  Recovery,
  ResourceReference,
  SandboxHandle,
  SandboxInfo,
  SnapshotHandle,
  VolumeHandle,
} from "@beachside/runloop/client";
import {
  type ContractHarness,
  type ContractResult,
  contractCases,
} from "@beachside/runloop/testing";

/** Holds only where both types are the same. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const is = <Holds extends true>(holds: Holds): Holds => holds;

export function settings(): Adapter[] {
  const credentials: RunloopCredentials = { apiKey: "ak_1", baseUrl: undefined };
  const config: RunloopConfig = {
    network: "internet",
    image: { kind: "prepared", name: "base" },
    resources: { vcpus: 2, memoryMiB: 4096 },
    lifecycle: { lifetimeSeconds: 600 },
    preview: { access: "public" },
    snapshots: { preserve: Preserve.FILESYSTEM },
    timeouts: { connectSeconds: 5, startSeconds: 60 },
  };
  const options: RunloopOptions = { ...credentials, ...config };
  const idle: RunloopConfig = { lifecycle: { idleSeconds: 60 } };
  // @ts-expect-error the key is needed
  const keyless: RunloopOptions = { network: "blocked" };
  // @ts-expect-error no such network
  const network: RunloopConfig = { network: "open" };
  // @ts-expect-error milliseconds are no unit here
  const milliseconds: RunloopConfig = { timeouts: { connectMs: 1 } };
  // @ts-expect-error seconds are a number
  const text: RunloopConfig = { lifecycle: { lifetimeSeconds: "600" } };
  // @ts-expect-error settings cannot be changed
  config.network = "blocked";
  void [idle, keyless, network, milliseconds, text];
  return [runloopAdapter, runloop(options)];
}

export async function sandbox(box: SandboxHandle, signal: AbortSignal): Promise<void> {
  is<Same<Awaited<ReturnType<typeof box.inspect>>, SandboxInfo>>(true);
  const result: ExecResult = await box.exec("true", { signal });
  is<Same<typeof result.exitCode, number>>(true);
  is<Same<typeof result.stdout, Uint8Array>>(true);
  const bytes: Uint8Array = await box.readFile("/etc/hostname");
  const name: string = await box.readTextFile("/etc/hostname");
  await box.writeFile("/tmp/a", bytes, { overwrite: true });
  const suspended: PowerResult = await box.suspend();
  const preview: Preview = await box.preview(8080);
  const gone: DestroyResult = await box.destroy();
  const submitted: Operation<DestroyResult> = await box.submitDestroy();
  is<Same<Awaited<ReturnType<typeof submitted.wait>>, DestroyResult>>(true);
  void [name, suspended.state, preview.url, gone.alreadyGone];
  // @ts-expect-error a port is a number
  await box.preview("8080");
  // @ts-expect-error content is text or bytes
  await box.writeFile("/tmp/a", { text: "x" });
  // @ts-expect-error overwriting is said by a boolean
  await box.writeFile("/tmp/a", "x", { overwrite: "yes" });
  // @ts-expect-error a signal is an AbortSignal
  await box.exec("true", { signal: new AbortController() });
  // @ts-expect-error text is not bytes
  const wrong: string = await box.readFile("/etc/hostname");
  void wrong;
}

export async function processes(box: SandboxHandle): Promise<void> {
  const started: ProcessHandle = await box.processes.start({
    command: ["python3", "-u"],
    output: { mode: "stream", format: "text" },
  });
  for await (const text of started.stdout) is<Same<typeof text, string>>(true);
  for await (const piece of started.output)
    is<Same<typeof piece.stream, "stdout" | "stderr">>(true);
  const exit: ProcessExit = await started.wait();
  is<Same<typeof exit.output, "complete" | "incomplete">>(true);
  const { stdout, stderr } = started.offsets();
  const from = { stdoutOffset: stdout, stderrOffset: stderr };
  const again: ProcessHandle = await box.processes.get(started.reference, from);
  await again.terminate();
  // @ts-expect-error a command is needed
  await box.processes.start({});
  // @ts-expect-error live output is the only mode
  await box.processes.start({ command: "true", output: { mode: "buffer" } });
  // @ts-expect-error a pattern is a RegExp or text
  await started.waitForOutput(1);
}

export async function snapshots(client: BeachsideClient, box: SandboxHandle): Promise<void> {
  const captured: CaptureResult = await box.snapshot();
  const snapshot: SnapshotHandle = captured.snapshot;
  const copy: SandboxHandle = await snapshot.restore({ lifecycle: { lifetimeSeconds: 60 } });
  const listed = await client.snapshots.list({ limit: 1 });
  is<Same<typeof listed.cursor, string | null>>(true);
  const reopened: SnapshotHandle = await client.snapshots.get(snapshot.reference);
  await reopened.delete();
  void copy;
  // @ts-expect-error a page's items cannot be changed
  listed.items.push(listed.items[0]);
  // @ts-expect-error a reference is no id
  await client.snapshots.get("snp_1");
}

export async function recovery(
  client: BeachsideClient,
  reference: OperationReference,
): Promise<string> {
  const recovered: Recovery = await client.recover(reference);
  switch (recovered.status) {
    case "done":
      return recovered.sandbox?.reference.id ?? "";
    case "in_progress":
      return (await recovered.continue()).status;
    case "failed":
      return recovered.reason ?? "";
    default:
      // @ts-expect-error only something that goes on has a stage
      void recovered.stage;
      return recovered.status;
  }
}

export async function account(client: BeachsideClient): Promise<void> {
  const capabilities: Capabilities = await client.capabilities();
  if (capabilities.volumes.create.status !== "supported") {
    is<Same<typeof capabilities.volumes.create.reason, string>>(true);
  }
  for await (const item of client.inventory()) {
    is<Same<typeof item, InventoryItem>>(true);
    const reference: ResourceReference = item.reference;
    void reference;
  }
  const volume: VolumeHandle = await client.volumes.create({ name: "cache" });
  await client.sandboxes.create({ mounts: [volume.at("/cache", { readOnly: true })] });
  await client.close();
  // @ts-expect-error a mount comes from a volume
  await client.sandboxes.create({ mounts: [{ path: "/cache" }] });
  // @ts-expect-error a client is made by connect
  new (client.constructor as typeof BeachsideClient)();
}

export function reports(error: BeachsideError, report: CleanupReport): unknown[] {
  is<Same<typeof error.status, number | undefined>>(true);
  is<Same<typeof error.stdout, Uint8Array | undefined>>(true);
  // @ts-expect-error what is known of a failure cannot be changed
  error.code = "NOT_FOUND";
  return [error.code, report];
}

export async function suite(harness: ContractHarness): Promise<ContractResult[]> {
  // @ts-expect-error a harness connects
  await contractCases[0]?.run({});
  return await Promise.all(contractCases.map(({ run }) => run(harness)));
}
