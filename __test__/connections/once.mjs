/**
 * Connects as the environment says, makes a sandbox, runs a command in it and
 * destroys it. Prints one line of JSON: what the command printed, or the error.
 */

import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

try {
  const adapter = runloop({ apiKey: process.env.RUNLOOP_API_KEY });
  const client = await Beachside.connect({ adapter });
  const box = await client.sandboxes.create();
  const result = await box.exec(["echo", "here"]);
  await box.destroy();
  await client.close();
  console.log(JSON.stringify({ printed: result.stdoutText() }));
} catch (error) {
  const { code, message, suggestion, attempts } = error;
  console.log(JSON.stringify({ code, message, suggestion, attempts }));
}
