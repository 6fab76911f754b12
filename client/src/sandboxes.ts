/** `client.sandboxes`: making, finding and reopening sandboxes. */

import type { CreateSandboxRequest, NetworkSpec, SandboxRecord, SandboxState } from "./adapter.js";
import {
  environment,
  invalid,
  isRecord,
  knownKeys,
  labelsOf,
  number,
  oneOf,
  optional,
  optionsOf,
  text,
} from "./arguments.js";
import { capability, type Feature, unsupported } from "./capabilities.js";
import { withSandbox } from "./cleanup.js";
import type { Connection } from "./connection.js";
import { type List, type ListOptions, list } from "./lists.js";
import {
  type CallOptions,
  type Mutation,
  type MutationOptions,
  type Operation,
  perform,
  submit,
} from "./operations.js";
import { validateResourceReference } from "./reference-checks.js";
import type { ResourceReference, SandboxReference } from "./references.js";
import { SandboxHandle } from "./sandbox-handle.js";
import { type SandboxSummary, sandboxSummary } from "./sandbox-info.js";

/** Options of `create`. */
export interface CreateOptions extends MutationOptions {
  /** Environment variables of every command in the sandbox. Never kept in references or messages. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Seconds until the provider ends the sandbox; the connection's own when omitted. */
  readonly lifecycle?: { readonly lifetimeSeconds?: number | undefined } | undefined;
  /** One that the connection supports; the connection's own when omitted. */
  readonly network?: NetworkSpec | undefined;
  /** Not supported by every provider. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Not supported by every provider. */
  readonly region?: string | undefined;
}

/** Options of `sandboxes.list`. */
export interface ListSandboxesOptions extends ListOptions {
  /** Only sandboxes in this state. */
  readonly state?: SandboxState | undefined;
}

const CREATE_KEYS = [
  "env",
  "lifecycle",
  "network",
  "mounts",
  "labels",
  "region",
  "signal",
  "onSubmit",
] as const;
const STATES: readonly SandboxState[] = [
  "starting",
  "running",
  "suspending",
  "suspended",
  "resuming",
  "failed",
  "destroyed",
  "unknown",
];

export class Sandboxes {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Makes a sandbox and waits until it runs.
   *
   * The request is sent once. A wait that ends early (`CANCELLED`,
   * `DEADLINE_EXCEEDED`) undoes nothing: `error.outcome.sandbox` names the
   * sandbox where it is known, `error.outcome.operation` goes to
   * `client.recover()`.
   */
  async create(options?: CreateOptions): Promise<SandboxHandle> {
    return perform(this.#connection, this.#create(options));
  }

  /** Like {@link create}, without waiting for the provider. */
  async submitCreate(options?: CreateOptions): Promise<Operation<SandboxHandle>> {
    return submit(this.#connection, this.#create(options));
  }

  /**
   * Makes a sandbox, calls `use` with it, and destroys it whatever happens.
   *
   * Resolves to what `use` gives. Where `use` or the create fails, that very
   * error is thrown, with the report of the clean-up as its `cleanup`; where
   * only the clean-up fails, its error is thrown. Destroys only what this call
   * is proven to have made; the destruction is not cancelled by `signal`.
   */
  with<T>(options: CreateOptions, use: (sandbox: SandboxHandle) => T | PromiseLike<T>): Promise<T> {
    return withSandbox(this.#connection, () => this.create(options), use);
  }

  /**
   * Reopens a saved reference: checks its shape and scope, and reads the
   * provider. Where the markers that the provider keeps are not those of the
   * reference, the handle's ownership is `unknown`.
   */
  get(reference: ResourceReference, options?: CallOptions): Promise<SandboxHandle> {
    return this.#connection.read("sandbox_get", options, [], async (_, call) => {
      const saved = validateResourceReference(reference);
      if (saved.kind !== "sandbox") {
        throw invalid(`sandboxes.get() takes the reference of a sandbox, not of a ${saved.kind}.`);
      }
      this.#connection.inScope(saved);
      const record = await this.#connection.adapter.inspectSandbox({ sandboxId: saved.id }, call);
      return new SandboxHandle(this.#connection, this.#reference(record, saved));
    });
  }

  /** The account's sandboxes, newest first where the provider sorts them. */
  list(options?: ListSandboxesOptions): List<SandboxSummary> {
    const { adapter } = this.#connection;
    return list(this.#connection, options, {
      operation: "sandbox_list",
      keys: ["state"],
      fetch: (page, given, call) => {
        const state = optional("state", given.state, (value) => oneOf("state", value, STATES));
        return adapter.listSandboxes({ ...page, ...state }, call);
      },
      item: (record: SandboxRecord) => sandboxSummary(record, this.#reference(record)),
    });
  }

  #reference(record: SandboxRecord, saved?: SandboxReference): SandboxReference {
    const { id, markers } = record;
    const ownership = this.#connection.ownership("sandbox", id, markers, saved?.ownership);
    return this.#connection.sandboxReference(id, ownership, saved?.mounts ?? "unknown");
  }

  #create(options: unknown): Mutation<SandboxRecord, SandboxHandle> {
    const connection = this.#connection;
    const { given, request } = connection.checked("sandbox_create", () => {
      const checked = optionsOf("create", options, CREATE_KEYS);
      return { given: checked, request: createRequest(connection, checked) };
    });
    return {
      kind: "sandbox_create",
      options: given,
      send: (markers, call) => connection.adapter.createSandbox({ ...request, markers }, call),
      known: (record, ownership) => {
        connection.remember("sandbox", record.id, ownership);
        return { sandbox: connection.sandboxReference(record.id, ownership, []) };
      },
      finish: async (record, call, ownership) => {
        if (record.state !== "running") {
          await connection.adapter.waitForSandbox({ sandboxId: record.id, state: "running" }, call);
        }
        return new SandboxHandle(connection, connection.sandboxReference(record.id, ownership, []));
      },
    };
  }
}

function createRequest(
  connection: Connection,
  given: { readonly [Key in (typeof CREATE_KEYS)[number]]?: unknown },
): Omit<CreateSandboxRequest, "markers"> {
  const request = {
    ...optional("env", given.env, environment),
    ...optional("lifecycle", given.lifecycle, lifecycleOf),
    ...optional("network", given.network, networkOf),
    ...optional("labels", given.labels, labelsOf),
    ...optional("region", given.region, (value) => text("region", value)),
  };
  const needs = { labels: "sandboxes.labels", region: "sandboxes.regions" } as const;
  for (const [key, feature] of Object.entries(needs)) {
    if (key in request) connection.require("sandbox_create", feature);
  }
  if (request.network !== undefined) requireNetwork(connection, "sandbox_create", request.network);
  acceptOptions(connection, "sandbox_create", "sandboxes.create", request);
  return request;
}

/** Refuses an option that the feature's leaf does not list. */
export function acceptOptions(
  connection: Connection,
  operation: string,
  feature: Feature,
  request: object,
): void {
  const leaf = capability(connection.capabilities, feature);
  if (leaf.status !== "supported" || leaf.options === undefined) return;
  for (const key of Object.keys(request)) {
    if (leaf.options.includes(key)) continue;
    const accepted = leaf.options.join(", ") || "no options";
    throw unsupported(
      connection.provider,
      operation,
      `${feature}.${key}`,
      `It accepts ${accepted} on this connection.`,
    );
  }
}

/** The network of one sandbox, which the connection must support. */
export function networkOf(value: unknown): NetworkSpec {
  if (value === "blocked" || value === "internet") return value;
  if (!isRecord(value)) throw invalid('network must be "blocked", "internet" or { allow: [...] }.');
  knownKeys("network", value, ["allow"]);
  if (!Array.isArray(value["allow"])) throw invalid("network.allow must be an array of strings.");
  return { allow: value["allow"].map((host, index) => text(`network.allow[${index}]`, host)) };
}

export function requireNetwork(
  connection: Connection,
  operation: string,
  network: NetworkSpec,
): void {
  const kind = typeof network === "string" ? network : "allow";
  connection.require(operation, `network.${kind}`);
}

/** The life cycle of one sandbox; an empty one counts as omitted. The range is the adapter's to check. */
export function lifecycleOf(value: unknown): { lifetimeSeconds: number } | undefined {
  if (!isRecord(value)) throw invalid("lifecycle must be a plain object.");
  knownKeys("lifecycle", value, ["lifetimeSeconds"]);
  if (value["lifetimeSeconds"] === undefined) return undefined;
  return {
    lifetimeSeconds: number("lifecycle.lifetimeSeconds", value["lifetimeSeconds"], {
      moreThan: 0,
      max: Number.MAX_SAFE_INTEGER,
    }),
  };
}
