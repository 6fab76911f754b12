/** The URL of a port of a sandbox. */

import type { PreviewRecord } from "./adapter.js";
import { number, readable } from "./arguments.js";
import type { Connection } from "./connection.js";
import type { CallOptions } from "./operations.js";
import type { SandboxReference } from "./references.js";

/** How to reach a port of a sandbox. */
export interface Preview {
  /** Address of the port, without a slash at its end. */
  readonly url: string;
  /** `public` is open to everyone who has the URL. */
  readonly access: "protected" | "public";
  /**
   * What a request to a protected preview must carry. Holds a secret, so it is
   * not enumerable: `util.inspect` and `JSON.stringify` leave it out.
   */
  readonly headers: Readonly<Record<string, string>>;
}

export function preview(
  connection: Connection,
  sandbox: SandboxReference,
  port: unknown,
  options: CallOptions | undefined,
): Promise<Preview> {
  return connection.read("preview_open", options, [], async (_, call) => {
    const checked = readable(() => number("port", port, { min: 1, max: 65535 }));
    connection.require("preview_open", "previews.open");
    const record = await connection.adapter.preview({ sandboxId: sandbox.id, port: checked }, call);
    return visiblePreview(record);
  });
}

function visiblePreview({ url, access, headers }: PreviewRecord): Preview {
  const shown = { url, access } as Preview;
  return Object.defineProperty(shown, "headers", { value: Object.freeze({ ...headers }) });
}
