/**
 * One client over TLS and HTTP/2 meets a fault at a time. Prints what each
 * mutation and each read came to, how often it was sent and how often a command
 * ran.
 *
 * CONTROL is where the simulator is told; it trusts by NODE_EXTRA_CA_CERTS.
 */

import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const { CONTROL, RUNLOOP_API_KEY: apiKey, FAULTS } = process.env;

async function control(method, path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${CONTROL}/_simulator${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers }),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** What a call came to, and the requests of this method that it sent. */
async function under(action, method, path, call) {
  await control("DELETE", "/faults");
  await control("DELETE", "/journal");
  await control("POST", "/faults", { match: { method, path, count: 1 }, action });
  const outcome = await call().then(
    () => "works",
    (error) => error.code ?? `${error}`,
  );
  await control("DELETE", "/faults");
  const { entries } = await control("GET", `/journal?method=${method}`);
  const pattern = new RegExp(`^${path.replaceAll("*", "[^/]+")}$`);
  const sent = entries.filter((entry) => pattern.test(entry.path));
  return { outcome, sent: sent.length, version: sent[0]?.http_version, tls: sent[0]?.tls };
}

const adapter = runloop({ apiKey, timeouts: { requestSeconds: 2 } });
const client = await Beachside.connect({ adapter });
const box = await client.sandboxes.create();
const results = [];
for (const [index, action] of JSON.parse(FAULTS).entries()) {
  const create = () => client.sandboxes.create();
  const exec = () => box.exec(["sh", "-c", `echo ran >> ran-${index}`]);
  const look = () => client.sandboxes.get(box.reference);
  const result = {
    action,
    create: await under(action, "POST", "/v1/devboxes", create),
    exec: await under(action, "POST", "/v1/devboxes/*/execute", exec),
    read: await under(action, "GET", "/v1/devboxes/*", look),
  };
  // By the client that has met the fault, which is as good as before.
  const trace = await box.exec(["sh", "-c", `cat ran-${index} 2>&-; true`]);
  results.push({ ...result, ran: trace.stdoutText().split("\n").length - 1 });
}
await client.close();
console.log(JSON.stringify({ results }));
