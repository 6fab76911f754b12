/** Reading and writing whole files of a sandbox. */

import type { WriteFileRequest } from "./adapter.js";
import { bytesOf, flag, number, optional, optionsOf, text } from "./arguments.js";
import type { Connection } from "./connection.js";
import { type CallOptions, type MutationOptions, perform } from "./operations.js";
import type { SandboxReference } from "./references.js";

/** Options of `writeFile`. */
export interface WriteFileOptions extends MutationOptions {
  /** Must be `true` where the provider cannot refuse to replace a file; see `capabilities().files.writeNew`. */
  readonly overwrite?: boolean | undefined;
  /** Permission bits, for example `0o755`. Omitted: an existing file keeps its own. */
  readonly mode?: number | undefined;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export function readFile(
  connection: Connection,
  sandbox: SandboxReference,
  path: unknown,
  options: CallOptions | undefined,
): Promise<Uint8Array> {
  return connection.read("file_read", options, [], async (_, call) => {
    connection.require("file_read", "files.read");
    const request = { sandboxId: sandbox.id, path: text("path", path) };
    return connection.adapter.readFile(request, call);
  });
}

export async function readTextFile(
  connection: Connection,
  sandbox: SandboxReference,
  path: unknown,
  options: CallOptions | undefined,
): Promise<string> {
  return decoder.decode(await readFile(connection, sandbox, path, options));
}

export async function writeFile(
  connection: Connection,
  sandbox: SandboxReference,
  path: unknown,
  content: unknown,
  options: WriteFileOptions | undefined,
): Promise<void> {
  const { given, request } = connection.checked("file_write", () => {
    const checked = optionsOf("writeFile", options, ["overwrite", "mode", "signal", "onSubmit"]);
    const write: WriteFileRequest = {
      sandboxId: sandbox.id,
      path: text("path", path),
      content: bytesOf("content", content, checked.onSubmit),
      ...optional("mode", checked.mode, (mode) => number("mode", mode, { min: 0, max: 0o7777 })),
    };
    if (!flag("overwrite", checked.overwrite)) connection.refuse("file_write", "files.writeNew");
    connection.require("file_write", "files.write");
    return { given: checked, request: write };
  });
  return await perform(connection, {
    kind: "file_write",
    target: sandbox,
    options: given,
    send: (_markers, call) => connection.adapter.writeFile(request, call),
    finish: async () => {},
  });
}

/** `box.files`: operations on directories and names, where the provider has them. */
export class SandboxFiles {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @throws UnsupportedFeatureError `files.list` */
  async list(_path: string): Promise<never> {
    return this.#connection.checked("file_list", () =>
      this.#connection.refuse("file_list", "files.list"),
    );
  }

  /** @throws UnsupportedFeatureError `files.mkdir` */
  async mkdir(_path: string): Promise<never> {
    return this.#connection.checked("file_mkdir", () =>
      this.#connection.refuse("file_mkdir", "files.mkdir"),
    );
  }

  /** @throws UnsupportedFeatureError `files.remove` */
  async remove(_path: string): Promise<never> {
    return this.#connection.checked("file_remove", () =>
      this.#connection.refuse("file_remove", "files.remove"),
    );
  }

  /** @throws UnsupportedFeatureError `files.rename` */
  async rename(_from: string, _to: string): Promise<never> {
    return this.#connection.checked("file_rename", () =>
      this.#connection.refuse("file_rename", "files.rename"),
    );
  }
}
