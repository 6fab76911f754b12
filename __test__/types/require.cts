// Compiled, never run: the same types for CommonJS, and one identity of every class in both.

import runloopPackage = require("@beachside/runloop");
import client = require("@beachside/runloop/client");
import testing = require("@beachside/runloop/testing");

export async function uses(): Promise<string> {
  const adapter: client.Adapter = runloopPackage.runloop({ apiKey: "ak_1" });
  const connected: client.BeachsideClient = await client.Beachside.connect(adapter);
  const box: client.SandboxHandle = await connected.sandboxes.create();
  const error: client.BeachsideError = new runloopPackage.BeachsideError("x", { code: "INTERNAL" });
  const [first]: readonly testing.ContractCase[] = testing.contractCases;
  // @ts-expect-error nothing of this name
  void runloopPackage.default;
  return `${box.reference.id}${error.code}${first?.name}`;
}
