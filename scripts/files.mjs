/** Finding files of this repository, the same way for every script. */

import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../", import.meta.url));

const SKIPPED = new Set(["node_modules", "target", "dist", ".git"]);

/** Files below a folder whose names the predicate accepts, sorted, relative to the root; none where there is no such folder. */
export function filesBelow(folder, accepts) {
  const found = [];
  const visit = (relative) => {
    for (const entry of readdirSync(path.join(root, relative), { withFileTypes: true })) {
      const below = path.join(relative, entry.name);
      if (entry.isDirectory()) {
        if (!SKIPPED.has(entry.name)) visit(below);
      } else if (accepts(entry.name)) found.push(below);
    }
  };
  if (existsSync(path.join(root, folder))) visit(folder);
  return found.sort();
}
