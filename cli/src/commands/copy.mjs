/** `cp`: whole files, to a sandbox or from one. */

import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { Failure } from "../failure.mjs";
import { findSandbox } from "../find.mjs";
import { withSession } from "../session.mjs";

/** @import { GlobalOptions } from "../session.mjs" */

/**
 * @param {string} from
 * @param {string} to
 * @param {GlobalOptions} options
 */
export function copy(from, to, options) {
  const source = remote(from);
  const target = remote(to);
  if ((source === undefined) === (target === undefined)) {
    throw new Failure(
      "One of the two must be SANDBOX:PATH. A local name with a colon needs ./ before it.",
      2,
    );
  }
  return withSession(options, {}, async ({ client, store, screen, signal }) => {
    const box = await findSandbox(client, store, (source ?? target)?.sandbox ?? "", signal);
    if (target !== undefined) {
      const { mode } = await stat(from);
      const content = await readFile(from);
      const at = target.path.endsWith("/") ? target.path + path.basename(from) : target.path;
      const onProgress = screen.progress("uploading");
      await box.writeFile(at, content, { overwrite: true, mode: mode & 0o777, signal, onProgress });
      screen.result({ path: at, bytes: content.length }, `${content.length} bytes to ${at}`);
      return;
    }
    const onProgress = screen.progress("downloading");
    const content = await box.readFile(source?.path ?? "", { signal, onProgress });
    const folder = await stat(to).then(
      (found) => found.isDirectory(),
      () => false,
    );
    const at = folder ? path.join(to, path.posix.basename(source?.path ?? "")) : to;
    await writeFile(at, content);
    screen.result({ path: at, bytes: content.length }, `${content.length} bytes to ${at}`);
  });
}

/**
 * `box:/path`; not `./a:b`, `/a:b` or `C:\a`.
 *
 * @param {string} text
 */
function remote(text) {
  const match = /^([^/\\.:][^/\\:]+):(.+)$/.exec(text);
  if (match === null) return undefined;
  return { sandbox: match[1] ?? "", path: match[2] ?? "" };
}
