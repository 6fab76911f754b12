// Compiled, never run: that correct uses type-check and mistakes do not.

import type { Adapter } from "@beachside/runloop/client";
import {
  Beachside,
  type BeachsideClient,
  BeachsideError,
  Image,
  isBeachsideError,
  Preserve,
  type SandboxHandle,
  UnsupportedFeatureError,
  validateResourceReference,
} from "beachside";

declare const adapter: Adapter;

export async function uses(signal: AbortSignal): Promise<void> {
  const client: BeachsideClient = await Beachside.connect({
    adapter,
    credentials: { apiKey: "ak_1" },
    config: { network: "blocked", image: Image.prepared("base") },
    cleanup: { storage: "allow-unconfirmed" },
    signal,
  });
  await Beachside.connect(adapter, { signal });
  const box: SandboxHandle = await client.sandboxes.create({
    env: { TOKEN: "x", MAYBE: undefined },
    lifecycle: { lifetimeSeconds: 900 },
    onSubmit: async (reference) => void reference.operationId,
  });
  const { exitCode, stdout } = await box.exec(["printf", "%s", "x"], {
    cwd: "/tmp",
    stdin: new Uint8Array([1]),
    timeoutSeconds: 0.5,
    signal,
  });
  const code: number = exitCode;
  const bytes: Uint8Array = stdout;
  const text: string = (await box.exec("echo $HOME")).stdoutText();
  const page = await client.sandboxes.list({ limit: 5, state: "running" });
  for await (const item of client.sandboxes.list()) await client.sandboxes.get(item.reference);
  const operation = await client.sandboxes.submitCreate();
  const made: SandboxHandle = await operation.wait({ signal });
  const answer: number = await client.sandboxes.with(
    {},
    async (each) => (await each.exec("true")).exitCode,
  );
  const reopened = validateResourceReference(JSON.parse(JSON.stringify(box.reference)));
  const preserve: Preserve = Preserve.FILESYSTEM;
  void [code, bytes, text, page.cursor, made, answer, reopened.kind, preserve];
}

export function narrows(error: unknown): string {
  if (error instanceof UnsupportedFeatureError) {
    return error.unmetRequirements.map((each) => each.reason).join() + error.feature;
  }
  if (error instanceof BeachsideError && error.outcome?.kind === "sandbox_create") {
    return error.outcome.sandbox?.id ?? "unknown";
  }
  return isBeachsideError(error) ? error.code : "";
}

export async function mistakes(client: BeachsideClient, box: SandboxHandle): Promise<void> {
  // @ts-expect-error an adapter is needed
  await Beachside.connect({ credentials: {} });
  // @ts-expect-error not a policy
  await Beachside.connect({ adapter, cleanup: { storage: "maybe" } });
  // @ts-expect-error a number is not a command
  await box.exec(1);
  // @ts-expect-error arguments are strings
  await box.exec(["sleep", 1]);
  // @ts-expect-error mistyped option
  await box.exec("true", { timeoutSecond: 1 });
  // @ts-expect-error mistyped option
  await client.sandboxes.create({ environment: {} });
  // @ts-expect-error not a state
  client.sandboxes.list({ state: "sleeping" });
  // @ts-expect-error a result cannot be changed
  (await box.exec("true")).exitCode = 1;
  // @ts-expect-error a reference cannot be changed
  box.reference.id = "other";
  // @ts-expect-error handles are made by the client
  void box.connection;
  // @ts-expect-error not a code
  new BeachsideError("x", { code: "WRONG" });
  // @ts-expect-error an image needs a name
  Image.prepared();
}
