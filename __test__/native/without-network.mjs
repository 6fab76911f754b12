// The first example with everything of JavaScript that could reach a network
// stubbed to throw: what it prints came over the addon.
import { createRequire, syncBuiltinESMExports } from "node:module";

const require = createRequire(import.meta.url);
const refuse = (name) => () => {
  throw new Error(`JavaScript used ${name}`);
};
for (const name of ["http", "https", "http2", "net", "tls", "dgram", "dns"]) {
  const module = require(`node:${name}`);
  for (const [key, value] of Object.entries(module)) {
    if (typeof value !== "function" || /^[A-Z]/.test(key)) continue;
    module[key] = refuse(`${name}.${key}`);
  }
}
syncBuiltinESMExports();
for (const name of ["fetch", "WebSocket", "EventSource", "XMLHttpRequest"]) {
  globalThis[name] = refuse(name);
}

if (process.argv[2] === "require") {
  const { Beachside } = require("beachside");
  const { runloop } = require("@beachside/runloop");
  const { RUNLOOP_API_KEY: apiKey } = process.env;
  Beachside.connect(runloop({ apiKey })).then(async (client) => {
    const box = await client.sandboxes.create();
    const result = await box.exec(["/bin/sh", "-c", "printf ready"]);
    console.log(result.stdoutText());
    await box.destroy();
    await client.close();
  });
} else {
  await import("../../examples/quickstart.mjs");
}
