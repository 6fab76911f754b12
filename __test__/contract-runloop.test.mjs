/** The contract suite, on the native adapter, against the simulator. */

import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";
import { contract } from "./support/contract.mjs";
import { KEY } from "./support/runloop.mjs";
import { startSimulator } from "./support/simulator.mjs";

contract("Runloop, simulated", async () => {
  const service = await startSimulator({ apiKey: KEY });
  const adapter = runloop({ apiKey: KEY, baseUrl: service.url });
  const connect = () => Beachside.connect({ adapter, cleanup: { storage: "allow-unconfirmed" } });
  return {
    connect,
    folder: "/home/user",
    async left() {
      const client = await connect();
      const live = { sandboxes: 0, snapshots: 0, volumes: 0 };
      for await (const { state } of client.sandboxes.list()) {
        if (state !== "destroyed") live.sandboxes += 1;
      }
      for await (const _ of client.snapshots.list()) live.snapshots += 1;
      await client.close();
      return live;
    },
    stop: () => service.stop(),
  };
});
