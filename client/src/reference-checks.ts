/**
 * Whether some JSON is a reference: shape only, nothing is requested.
 *
 * Every refusal names the field that is missing, mistyped, unknown or
 * inconsistent with another. Whether the resource exists, and whether it is
 * still the one that was saved, shows when the reference is reopened.
 */

import { invalid, isRecord, nearest, quote, readable } from "./arguments.js";
import {
  MAX_MOUNTS_JSON_BYTES,
  type OperationKind,
  type OperationReference,
  type ResourceKind,
  type ResourceReference,
} from "./references.js";

const MAX_ID_LENGTH = 1024;
/** What `Date.parse()` takes is much more, and of any length. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
const COMMON = ["version", "kind", "provider", "scope"];
const RESOURCE = [...COMMON, "id", "ownership"];
const RESOURCE_FIELDS: Readonly<Record<ResourceKind, readonly string[]>> = {
  sandbox: [...RESOURCE, "mounts"],
  snapshot: [...RESOURCE, "mounts"],
  volume: RESOURCE,
  process: [...RESOURCE, "sandbox"],
};
const OPERATION_FIELDS = [...COMMON, "operation", "operationId", "submissionId", "submittedAt"];
/** The kind of what each operation acts on; `null` where it makes something out of nothing. */
const TARGETS: Readonly<Record<OperationKind, ResourceKind | null>> = {
  sandbox_create: null,
  sandbox_suspend: "sandbox",
  sandbox_resume: "sandbox",
  sandbox_destroy: "sandbox",
  exec: "sandbox",
  process_start: "sandbox",
  process_terminate: "process",
  file_write: "sandbox",
  snapshot_capture: "sandbox",
  snapshot_restore: "snapshot",
  snapshot_delete: "snapshot",
  volume_create: null,
  volume_delete: "volume",
};

type Fields = Record<string, unknown>;

/**
 * Checks that parsed JSON has the shape of a resource reference, and returns a
 * frozen copy.
 *
 * @throws BeachsideError `INVALID_ARGUMENT` that names the field.
 */
export function validateResourceReference(json: unknown): ResourceReference {
  return readable(() => resourceReference(json));
}

function resourceReference(json: unknown): ResourceReference {
  const fields = referenceFields(json);
  if (fields["kind"] === "operation") {
    throw invalid('reference.kind is "operation"; give operation references to client.recover().');
  }
  return resource("reference", fields);
}

/**
 * Checks that parsed JSON has the shape of an operation reference, and returns
 * a frozen copy.
 *
 * @throws BeachsideError `INVALID_ARGUMENT` that names the field.
 */
export function validateOperationReference(json: unknown): OperationReference {
  const fields = referenceFields(json);
  if (fields["kind"] !== "operation") {
    throw invalid(
      `reference.kind must be "operation", not ${shown(fields["kind"])}; onSubmit and error.outcome.operation give one.`,
    );
  }
  exactFields("reference", fields, OPERATION_FIELDS, ["target"]);
  common("reference", fields);
  const operation = fields["operation"];
  if (typeof operation !== "string" || !Object.hasOwn(TARGETS, operation)) {
    throw invalid(`reference.operation is not a known operation: ${shown(operation)}.`);
  }
  identifier("reference.operationId", fields["operationId"]);
  identifier("reference.submissionId", fields["submissionId"]);
  const at = fields["submittedAt"];
  if (typeof at !== "string" || !TIME.test(at) || Number.isNaN(Date.parse(at))) {
    throw invalid("reference.submittedAt must be a time in ISO 8601.");
  }
  targetOf(operation as OperationKind, fields);
  return frozenCopy(fields) as unknown as OperationReference;
}

/** A deep copy of plain JSON that nobody can change. */
export function frozenCopy<T>(json: T): T {
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return Object.freeze(json.map(frozenCopy)) as T;
  const copy: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(json)) copy[name] = frozenCopy(value);
  return Object.freeze(copy) as T;
}

function referenceFields(json: unknown): Fields {
  if (typeof json === "string") {
    throw invalid(
      "A reference is an object, as handle.reference is: parse saved text with JSON.parse() first; an id alone does not do.",
    );
  }
  if (!isRecord(json)) {
    const isHandle = isRecord((json as { reference?: unknown } | null)?.reference);
    const hint = isHandle ? "; this is a handle, pass its reference" : "";
    throw invalid(`A reference must be a plain object${hint}.`);
  }
  return json;
}

function resource(at: string, fields: Fields): ResourceReference {
  const kind = fields["kind"];
  if (kind === undefined) throw missing(`${at}.kind`);
  if (typeof kind !== "string" || !Object.hasOwn(RESOURCE_FIELDS, kind)) {
    const known = Object.keys(RESOURCE_FIELDS).join(", ");
    throw invalid(`${at}.kind must be one of ${known}, not ${shown(kind)}.`);
  }
  exactFields(at, fields, RESOURCE_FIELDS[kind as ResourceKind]);
  common(at, fields);
  identifier(`${at}.id`, fields["id"]);
  ownership(`${at}.ownership`, fields["ownership"]);
  if ("mounts" in fields) mounts(`${at}.mounts`, fields["mounts"]);
  if ("sandbox" in fields) identifier(`${at}.sandbox`, fields["sandbox"]);
  return frozenCopy(fields) as unknown as ResourceReference;
}

function common(at: string, fields: Fields): void {
  const version = fields["version"];
  if (version !== 1) {
    const newer = typeof version === "number" && version > 1;
    throw invalid(
      newer
        ? `${at}.version is ${version}: it was made by a newer version of this library.`
        : `${at}.version must be 1, not ${shown(version)}.`,
    );
  }
  identifier(`${at}.provider`, fields["provider"]);
  const scope = fields["scope"];
  if (!isRecord(scope)) throw invalid(`${at}.scope must be an object.`);
  exactFields(`${at}.scope`, scope, ["account"]);
  identifier(`${at}.scope.account`, scope["account"]);
}

function ownership(at: string, value: unknown): void {
  if (!isRecord(value)) throw invalid(`${at} must be an object.`);
  const state = value["state"];
  if (state === undefined) throw missing(`${at}.state`);
  if (state === "created") {
    exactFields(at, value, ["state", "operation", "submission"]);
    identifier(`${at}.operation`, value["operation"]);
    identifier(`${at}.submission`, value["submission"]);
  } else if (state === "unknown") {
    for (const key of ["operation", "submission"]) {
      if (value[key] === undefined) continue;
      throw invalid(`${at}.${key} is inconsistent with ${at}.state, which is "unknown".`);
    }
    exactFields(at, value, ["state"]);
  } else {
    throw invalid(`${at}.state must be "created" or "unknown", not ${shown(state)}.`);
  }
}

function mounts(at: string, value: unknown): void {
  if (value === "unknown") return;
  if (!Array.isArray(value)) throw invalid(`${at} must be an array, or "unknown".`);
  for (const [index, mount] of value.entries()) {
    const here = `${at}[${index}]`;
    if (!isRecord(mount)) throw invalid(`${here} must be an object.`);
    exactFields(here, mount, ["volume", "path", "readOnly"], ["subpath"]);
    identifier(`${here}.volume`, mount["volume"]);
    identifier(`${here}.path`, mount["path"]);
    if (typeof mount["readOnly"] !== "boolean")
      throw invalid(`${here}.readOnly must be a boolean.`);
    if (mount["subpath"] !== undefined) identifier(`${here}.subpath`, mount["subpath"]);
  }
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_MOUNTS_JSON_BYTES) {
    throw invalid(`${at} is longer than ${MAX_MOUNTS_JSON_BYTES} bytes as JSON.`);
  }
}

/** What an operation acts on must be there, and of its kind. */
function targetOf(operation: OperationKind, fields: Fields): void {
  const { target } = fields as { readonly target?: unknown };
  const expected = TARGETS[operation];
  if (target === undefined) {
    if (expected !== null) throw missing("reference.target");
    return;
  }
  if (!isRecord(target)) throw invalid("reference.target must be an object.");
  const { kind } = resource("reference.target", target);
  if (kind !== expected) {
    const right = expected === null ? "left out" : `a ${expected}`;
    throw invalid(
      `reference.target is inconsistent with reference.operation: for ${operation} it must be ${right}, not a ${kind}.`,
    );
  }
  sameScope(fields, target);
}

function sameScope(outer: Fields, inner: Fields): void {
  const [a, b] = [outer, inner].map((each) => [
    each["provider"],
    (each["scope"] as Fields)["account"],
  ]);
  if (a?.[0] !== b?.[0])
    throw invalid("reference.target.provider differs from reference.provider.");
  if (a?.[1] !== b?.[1]) {
    throw invalid("reference.target.scope.account differs from reference.scope.account.");
  }
}

function exactFields(
  at: string,
  value: Fields,
  required: readonly string[],
  optional: readonly string[] = [],
): void {
  for (const key of required) {
    if (value[key] === undefined) throw missing(`${at}.${key}`);
  }
  const known = [...required, ...optional];
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    const near = nearest(key, known);
    const hint = near === undefined ? "" : `; the nearest known one is ${quote(near)}`;
    throw invalid(`${at} has an unknown field ${quote(key)}${hint}.`);
  }
}

function identifier(at: string, value: unknown): void {
  if (value === undefined) throw missing(at);
  if (typeof value !== "string") throw invalid(`${at} must be a string, not ${shown(value)}.`);
  if (value === "") throw invalid(`${at} must not be empty.`);
  if (value.length > MAX_ID_LENGTH) throw invalid(`${at} is longer than ${MAX_ID_LENGTH}.`);
  if (/[\p{Cc}\p{Surrogate}]/u.test(value)) throw invalid(`${at} holds a control character.`);
}

function missing(at: string): Error {
  return invalid(`${at} is missing. Save and pass the whole reference.`);
}

function shown(value: unknown): string {
  if (typeof value === "string") return quote(value);
  return typeof value === "number" || typeof value === "boolean" ? String(value) : typeof value;
}
