/** The contract suite, on the in-memory adapter. */

import { Beachside } from "beachside";
import { contract } from "./support/contract.mjs";
import { memoryAdapter } from "./support/memory-adapter.mjs";
import { MemoryWorld } from "./support/memory-world.mjs";

const cleanup = { storage: "allow-unconfirmed" };

/** An in-memory provider with the given differences. */
function memory(capabilities) {
  return async () => {
    const world = new MemoryWorld();
    world.runsProcesses = true;
    const { adapter } = memoryAdapter({ world, capabilities });
    return {
      connect: () => Beachside.connect({ adapter, cleanup }),
      left: () => ({
        sandboxes: [...world.sandboxes.values()].filter((each) => each.state !== "destroyed")
          .length,
        snapshots: world.snapshots.size,
        volumes: world.volumes.size,
      }),
      stop() {},
    };
  };
}

const stopping = {
  "snapshots.capture": {
    value: { preserve: "filesystem+memory", interruption: "stop", sourceAfter: "stopped" },
  },
  "snapshots.restore": { value: { execution: "resumed" }, options: ["lifecycle"] },
  "volumes.mount": { value: { durability: "confirmed" } },
};

const providers = {
  "in memory": memory(),
  "in memory, where a capture stops the source and keeps memory": memory(stopping),
};

for (const [provider, start] of Object.entries(providers)) contract(provider, start);
