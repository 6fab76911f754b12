/**
 * What this machine knows of its own sandboxes, snapshots, processes and
 * operations: one JSON file each, so that commands that run at once do not
 * lose each other's. Holds references only, never a key or a variable.
 */

import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

/** @import { OperationReference, ResourceReference } from "@beachside/runloop" */

/**
 * @typedef {object} Saved
 * @property {OperationReference | ResourceReference} reference
 * @property {string} [name] what the user calls it
 * @property {string} savedAt ISO 8601
 */

/** `BEACHSIDE_STATE`, else the user's directory for state. */
export function stateFolder(env = process.env) {
  if (env["BEACHSIDE_STATE"]) return path.resolve(env["BEACHSIDE_STATE"]);
  const base = env["XDG_STATE_HOME"] || path.join(os.homedir(), ".local", "state");
  return path.join(base, "beachside");
}

export class Store {
  #folder;

  /** @param {string} account one folder each: ids of one account mean nothing in another */
  constructor(account, folder = stateFolder()) {
    this.#folder = path.join(folder, encodeURIComponent(account));
  }

  /**
   * Atomic, and on disk when it resolves.
   *
   * @param {OperationReference | ResourceReference} reference
   * @param {string} [name]
   */
  async save(reference, name) {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const file = this.#file(reference);
    /** @type {Saved} */
    const saved = {
      reference,
      ...(name === undefined ? {} : { name }),
      savedAt: new Date().toISOString(),
    };
    const temporary = `${file}.${process.pid}`;
    await writeFile(temporary, `${JSON.stringify(saved, null, 2)}\n`, { mode: 0o600, flush: true });
    await rename(temporary, file);
  }

  /** @param {OperationReference | ResourceReference} reference */
  async forget(reference) {
    await rm(this.#file(reference), { force: true });
  }

  /**
   * Everything of a kind, oldest first.
   *
   * @param {"sandbox" | "snapshot" | "process" | "operation"} kind
   * @returns {Promise<Saved[]>}
   */
  async all(kind) {
    const names = await readdir(this.#folder).catch((error) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    const files = names.filter((each) => each.startsWith(`${kind}-`) && each.endsWith(".json"));
    const saved = await Promise.all(
      files.map(async (file) => JSON.parse(await readFile(path.join(this.#folder, file), "utf8"))),
    );
    return saved.sort((a, b) => a.savedAt.localeCompare(b.savedAt));
  }

  /** @param {OperationReference | ResourceReference} reference */
  #file(reference) {
    const id = reference.kind === "operation" ? reference.operationId : reference.id;
    return path.join(this.#folder, `${reference.kind}-${encodeURIComponent(id)}.json`);
  }
}
