/**
 * The one set of names: what `error.operation` says, and the call that it
 * stands for. Mutations have the names of {@link OperationKind}, which
 * references keep.
 */

import type { OperationKind } from "./references.js";

/** Calls by the names of their operations. */
export const CALLS = {
  connect: "connect",
  capabilities: "capabilities",
  inventory: "inventory",
  recover: "recover",
  sandbox_create: "create",
  sandbox_with: "sandboxes.with",
  sandbox_get: "sandboxes.get",
  sandbox_list: "sandboxes.list",
  sandbox_inspect: "inspect",
  sandbox_suspend: "suspend",
  sandbox_resume: "resume",
  sandbox_destroy: "destroy",
  sandbox_renew: "renew",
  sandbox_terminal: "terminal",
  sandbox_fork: "fork",
  exec: "exec",
  process_start: "processes.start",
  process_get: "processes.get",
  process_read: "reading output",
  process_status: "status",
  process_wait: "wait",
  process_wait_for_output: "waitForOutput",
  process_kill: "kill",
  process_terminate: "terminate",
  file_read: "readFile",
  file_write: "writeFile",
  file_list: "files.list",
  file_mkdir: "files.mkdir",
  file_remove: "files.remove",
  file_rename: "files.rename",
  port_wait: "waitForPort",
  preview_open: "preview",
  snapshot_check: "checkSnapshot",
  snapshot_capture: "snapshot",
  snapshot_get: "snapshots.get",
  snapshot_list: "snapshots.list",
  snapshot_inspect: "inspect",
  snapshot_restore: "restore",
  snapshot_delete: "delete",
  volume_create: "volumes.create",
  volume_get: "volumes.get",
  volume_list: "volumes.list",
  volume_inspect: "inspect",
  volume_at: "volume.at",
  volume_delete: "delete",
} as const satisfies { readonly [Name in OperationKind]: string } & {
  readonly [name: string]: string;
};

/** What a call is named in errors. */
export type OperationName = keyof typeof CALLS;
