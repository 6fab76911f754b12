import { Beachside } from "beachside";
import { runloopAdapter } from "@beachside/runloop";

const client = await Beachside.connect({
  adapter: runloopAdapter,
  credentials: { apiKey: process.env.RUNLOOP_API_KEY },
  config: { network: "blocked" },
});
try {
  const box = await client.sandboxes.create();
  try {
    console.log((await box.exec(["/bin/sh", "-c", "printf ready"])).stdoutText());
  } finally {
    await box.destroy();
  }
} finally {
  await client.close();
}
