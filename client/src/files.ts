/** Reading and writing whole files of a sandbox. */

import type { WriteFileRequest } from "./adapter.js";
import { bytesOf, callback, flag, number, optional, optionsOf, text } from "./arguments.js";
import type { Connection } from "./connection.js";
import { type CallOptions, type MutationOptions, perform } from "./operations.js";
import { limited, type ProgressOptions } from "./progress.js";
import type { SandboxReference } from "./references.js";

/** Options of `writeFile`. */
export interface WriteFileOptions extends MutationOptions, ProgressOptions {
  /** Must be `true` where the provider cannot refuse to replace a file; see `capabilities().files.writeNew`. */
  readonly overwrite?: boolean | undefined;
  /** Permission bits, for example `0o755`. Omitted: an existing file keeps its own. */
  readonly mode?: number | undefined;
}

/** Options of `readFile` and `readTextFile`. */
export interface ReadFileOptions extends CallOptions, ProgressOptions {}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export function readFile(
  connection: Connection,
  sandbox: SandboxReference,
  path: unknown,
  options: ReadFileOptions | undefined,
): Promise<Uint8Array> {
  return connection.read("file_read", options, ["onProgress"], async (given, call) => {
    connection.require("file_read", "files.read");
    const request = { sandboxId: sandbox.id, path: text("path", path) };
    const tell = limited(callback("onProgress", given.onProgress));
    if (tell === undefined) return await connection.adapter.readFile(request, call);
    tell({ phase: "downloading", bytes: 0 });
    const content = await connection.adapter.readFile(request, { ...call, onProgress: tell });
    tell({ phase: "done", bytes: content.length, totalBytes: content.length });
    return content;
  });
}

export async function readTextFile(
  connection: Connection,
  sandbox: SandboxReference,
  path: unknown,
  options: ReadFileOptions | undefined,
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
  const { given, request, tell } = connection.checked("file_write", () => {
    const checked = optionsOf("writeFile", options, [
      "overwrite",
      "mode",
      "signal",
      "onSubmit",
      "onProgress",
    ]);
    const write: WriteFileRequest = {
      sandboxId: sandbox.id,
      path: text("path", path),
      content: bytesOf("content", content, checked.onSubmit),
      ...optional("mode", checked.mode, (mode) =>
        number("mode", mode, { min: 0, max: 0o7777, hint: "write 0o755" }),
      ),
    };
    if (!flag("overwrite", checked.overwrite)) connection.refuse("file_write", "files.writeNew");
    connection.require("file_write", "files.write");
    const onProgress = limited(callback("onProgress", checked.onProgress));
    return { given: checked, request: write, tell: onProgress };
  });
  const totalBytes = request.content.length;
  return await perform(connection, {
    kind: "file_write",
    target: sandbox,
    options: given,
    send: (_evidence, call) => {
      if (tell === undefined) return connection.adapter.writeFile(request, call);
      tell({ phase: "uploading", bytes: 0, totalBytes });
      return connection.adapter.writeFile(request, { ...call, onProgress: tell });
    },
    finish: async () => tell?.({ phase: "done", bytes: totalBytes, totalBytes }),
  });
}

/**
 * `box.files`: operations on directories and names, where the provider has
 * them. Runloop has none: each call is `UNSUPPORTED`, and a command does it.
 *
 * ```js
 * await box.exec(["mkdir", "-p", "/tmp/build"]);
 * ```
 */
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
