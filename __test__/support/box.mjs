/** A running sandbox on a simulator of its own, and a look into it from outside. */

import assert from "node:assert/strict";
import { KEY, runloopClient } from "./runloop.mjs";

/** A sandbox that ends with the test; its journal is empty. */
export async function sandbox(t, options = {}) {
  const { client, service } = await runloopClient(t, options);
  const box = await client.sandboxes.create();
  t.after(() => box.destroy().catch(() => {}));
  await service.clearJournal();
  return { box, client, service, outside: new Outside(service, box.reference.id) };
}

/** The service's own shell in the guest, past everything that is under test. */
export class Outside {
  #service;
  #id;

  constructor(service, id) {
    this.#service = service;
    this.#id = id;
  }

  async run(command) {
    const url = `${this.#service.url}/v1/devboxes/${this.#id}/execute?last_n=1000`;
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ command, command_id: crypto.randomUUID() }),
    });
    const { stdout } = await response.json();
    return stdout ?? "";
  }

  /** Paths of ours in /tmp, and processes with `word` in their command line. */
  async litter(word = "beachside") {
    const script = `ls -d /tmp/beachside-* 2>/dev/null
      for p in /proc/[0-9]*; do c=$(tr '\\0\\n' '  ' <$p/cmdline 2>/dev/null)
      case $c in *"for p in /proc"*) ;; *${word}*) printf '%s %s\\n' "$p" "$c" ;; esac; done`;
    return (await this.run(script)).split("\n").filter((line) => line !== "");
  }

  /** Waits until nothing of ours is there, and fails with what is. */
  async assertClean(word) {
    let left = await this.litter(word);
    for (let look = 0; left.length > 0 && look < 100; look++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      left = await this.litter(word);
    }
    assert.deepEqual(left, []);
  }
}

/** The last part of the path of each request, in order. */
export async function requests(service) {
  const { entries } = await service.journal();
  return entries.map(({ path }) => path.split("/").at(-1));
}
