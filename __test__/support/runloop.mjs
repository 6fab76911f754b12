/** A simulator, and a client that is connected to it through the addon. */

import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";
import { keepSecret } from "./leaks.mjs";
import { startSimulator } from "./simulator.mjs";

export const KEY = keepSecret("the API key", "ak_test_secret_key_1234567890");

/** A simulator that ends with the test. */
export async function simulator(t, options = {}) {
  const started = await startSimulator({ apiKey: KEY, ...options });
  t.after(() => started.stop());
  return started;
}

/** A simulator and a client. `config` are the adapter's settings. */
export async function runloopClient(t, { config = {}, cleanup, ...options } = {}) {
  const service = await simulator(t, options);
  const client = await connect(t, service, { config, cleanup });
  await service.clearJournal();
  return { client, service };
}

/** Another client of the same simulator, as another process would be. */
export async function connect(t, service, { config = {}, cleanup, apiKey = KEY } = {}) {
  const adapter = runloop({ apiKey, baseUrl: service.url, ...config });
  const client = await Beachside.connect({ adapter, cleanup });
  t.after(() => client.close());
  return client;
}

/** How many requests of the journal are on a route, `METHOD /path` with `*` for an id. */
export async function count(service, route) {
  const { lines } = await service.journal();
  const [method, path] = route.split(" ");
  const pattern = new RegExp(`^${method} ${path.replaceAll("*", "[^/]+")}$`);
  return lines.filter((line) => pattern.test(line)).length;
}
