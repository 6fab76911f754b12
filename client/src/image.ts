/**
 * Descriptions of the image that sandboxes start from. Making one asks no
 * provider; whether it is supported shows when a connection is made.
 */

import type { ImageSpec } from "./adapter.js";
import { invalid, isRecord, text } from "./arguments.js";

/**
 * What sandboxes start from, as the `image` of the settings. Which kinds there
 * are is the provider's to say: `capabilities().images`.
 *
 * ```js
 * const adapter = runloop({ apiKey, image: Image.prepared("my-blueprint") });
 * ```
 */
export const Image = Object.freeze({
  /** An image that the provider has already, by name or id. */
  prepared(name: string): ImageSpec {
    return Object.freeze({ kind: "prepared", name: text("Image.prepared: name", name) });
  },

  /** An OCI image, for example `docker.io/library/debian:12`. */
  oci(reference: string): ImageSpec {
    return Object.freeze({ kind: "oci", reference: text("Image.oci: reference", reference) });
  },

  /** An image that the provider builds. What the definition holds is the provider's to say. */
  build(definition: Readonly<Record<string, unknown>>): ImageSpec {
    if (!isRecord(definition)) throw invalid("Image.build: definition must be a plain object.");
    return Object.freeze({ kind: "build", definition: Object.freeze({ ...definition }) });
  },
});
