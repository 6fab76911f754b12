/**
 * Everything that the account holds, kind by kind, in pages.
 *
 * A page holds one kind. The cursor says which kind and where in it; it is
 * opaque to callers.
 */

import type { Page as AdapterPage, Call, PageRequest } from "./adapter.js";
import { invalid } from "./arguments.js";
import type { Feature } from "./capabilities.js";
import type { Connection } from "./connection.js";
import { type List, type ListOptions, list } from "./lists.js";
import { foundSandbox, type SandboxSummary, sandboxSummary } from "./sandbox-info.js";

import { type SnapshotSummary, snapshotSummary } from "./snapshot-handle.js";
import { foundSnapshot } from "./snapshots.js";
import { adapterVolumes, foundVolume, type VolumeInfo, volumeInfo } from "./volumes.js";

/** A resource of any kind; `reference.kind` says which. */
export type InventoryItem = SandboxSummary | SnapshotSummary | VolumeInfo;

interface Kind {
  readonly name: string;
  readonly feature: Feature;
  load(connection: Connection, page: PageRequest, call: Call): Promise<AdapterPage<InventoryItem>>;
}

const KINDS: readonly Kind[] = [
  {
    name: "sandbox",
    feature: "sandboxes.list",
    load: async (connection, page, call) =>
      converted(await connection.adapter.listSandboxes(page, call), (record) =>
        sandboxSummary(record, foundSandbox(connection, record)),
      ),
  },
  {
    name: "snapshot",
    feature: "snapshots.list",
    load: async (connection, page, call) =>
      converted(await connection.adapter.listSnapshots(page, call), (record) =>
        snapshotSummary(record, foundSnapshot(connection, record)),
      ),
  },
  {
    name: "volume",
    feature: "volumes.list",
    load: async (connection, page, call) =>
      converted(
        await adapterVolumes(connection, "inventory", "volumes.list").list(page, call),
        (record) => volumeInfo(record, foundVolume(connection, record)),
      ),
  },
];

export function inventory(
  connection: Connection,
  options: ListOptions | undefined,
): List<InventoryItem> {
  return list(connection, options, {
    operation: "inventory",
    keys: [],
    load: async (page, _given, call) => {
      const listed = KINDS.filter(
        (kind) => connection.capability(kind.feature).status !== "unsupported",
      );
      const at = page.cursor === undefined ? undefined : decode(page.cursor);
      const index = at === undefined ? 0 : listed.findIndex((kind) => kind.name === at.kind);
      const kind = listed[index];
      if (kind === undefined) throw invalid("cursor is not one that inventory() gave.");
      const { items, cursor, coverage } = await kind.load(
        connection,
        { limit: page.limit, ...(at?.cursor == null ? {} : { cursor: at.cursor }) },
        call,
      );
      const next = listed[index + 1];
      return {
        items,
        coverage,
        cursor:
          cursor === null
            ? next === undefined
              ? null
              : encode({ kind: next.name, cursor: null })
            : encode({ kind: kind.name, cursor }),
      };
    },
    item: (item) => item,
  });
}

interface Position {
  readonly kind: string;
  readonly cursor: string | null;
}

function converted<Record>(
  page: AdapterPage<Record>,
  toItem: (record: Record) => InventoryItem,
): AdapterPage<InventoryItem> {
  return { ...page, items: page.items.map(toItem) };
}

function encode(position: Position): string {
  return Buffer.from(JSON.stringify([position.kind, position.cursor])).toString("base64url");
}

function decode(cursor: string): Position {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch (error) {
    throw invalid("cursor is not one that inventory() gave.", error);
  }
  const [kind, inner] = Array.isArray(parsed) ? parsed : [];
  if (typeof kind !== "string" || !(inner === null || typeof inner === "string")) {
    throw invalid("cursor is not one that inventory() gave.");
  }
  return { kind, cursor: inner };
}
