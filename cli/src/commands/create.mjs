/** `create`, `restore`: a new sandbox, from an image or from a snapshot. */

import { findSnapshot } from "../find.mjs";
import { withSession } from "../session.mjs";

/** @import { GlobalOptions } from "../session.mjs" */

/**
 * @typedef {object} NewSandbox
 * @property {string} [snapshot]
 * @property {string} [image]
 * @property {"blocked" | "internet"} network
 * @property {number} [cpu]
 * @property {number} [memory]
 * @property {number} [lifetime]
 * @property {number} [idle]
 * @property {"protected" | "public"} preview
 * @property {Record<string, string>} [env]
 * @property {string} [name]
 */

/** @param {NewSandbox & GlobalOptions} options */
export function create(options) {
  return withSession(options, config(options), async ({ client, store, screen, signal }) => {
    /** @type {import("@beachside/runloop").OperationReference | undefined} */
    let operation;
    const call = {
      signal,
      onProgress: screen.progress(options.snapshot === undefined ? "creating" : "restoring"),
      ...(options.env === undefined ? {} : { env: options.env }),
      // Saved before it is sent: what a crash leaves is found by `gc`.
      onSubmit: async (
        /** @type {import("@beachside/runloop").OperationReference} */ reference,
      ) => {
        operation = reference;
        await store.save(reference);
      },
    };
    const box =
      options.snapshot === undefined
        ? await client.sandboxes.create(call)
        : await (await findSnapshot(client, store, options.snapshot, signal)).restore(call);
    await store.save(box.reference, options.name);
    if (operation !== undefined) await store.forget(operation);
    screen.result(box.reference, box.reference.id);
  });
}

/** @param {NewSandbox} options */
function config({ image, network, cpu, memory, lifetime, idle, preview }) {
  return {
    network,
    preview: { access: preview },
    ...(image === undefined ? {} : { image }),
    ...(cpu === undefined && memory === undefined
      ? {}
      : {
          resources: {
            ...(cpu === undefined ? {} : { vcpus: cpu }),
            ...(memory === undefined ? {} : { memoryMiB: memory }),
          },
        }),
    ...(lifetime === undefined ? {} : { lifecycle: { lifetimeSeconds: lifetime } }),
    ...(idle === undefined ? {} : { lifecycle: { idleSeconds: idle } }),
  };
}
