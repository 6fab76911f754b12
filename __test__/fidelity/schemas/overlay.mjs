// Where the specification in `views/` and `routes.json` is older than the
// service: each entry says what shows it. "SDK" is `@runloop/api-client` 1.32.0;
// what its types or its code say about an answer is certain, the rest is marked.

/** Views that the specification lacks. */
export const addedViews = {
  // SDK, resources/accounts. `created_at` is text, unlike every `*_ms` field;
  // its format is not written anywhere (inferred: RFC 3339).
  AccountView: {
    type: "object",
    additionalProperties: false,
    required: ["id", "name", "tier", "account_status", "created_at", "billing"],
    properties: {
      id: { type: "string", minLength: 1 },
      name: { type: "string" },
      tier: {
        enum: [
          "ACCOUNT_TIER_INVALID",
          "ACCOUNT_TIER_BASIC",
          "ACCOUNT_TIER_PRO",
          "ACCOUNT_TIER_ENTERPRISE",
          "ACCOUNT_TIER_TRIAL",
          "UNRECOGNIZED",
        ],
      },
      account_status: {
        enum: [
          "ACCOUNT_STATUS_INVALID",
          "ACCOUNT_STATUS_ONBOARDING",
          "ACCOUNT_STATUS_ENABLED",
          "ACCOUNT_STATUS_DISABLED_BY_ADMIN",
          "ACCOUNT_STATUS_DISABLED_QUOTA_REACHED",
          "ACCOUNT_STATUS_TRIAL_CANCELLED",
          "ACCOUNT_STATUS_STRIPE_PENDING_RESOURCES",
          "UNRECOGNIZED",
        ],
      },
      created_at: { type: "string", pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d" },
      billing: {
        type: "object",
        additionalProperties: false,
        required: ["account_billing_type"],
        properties: {
          account_billing_type: {
            enum: ["STRIPE", "AWS_MARKETPLACE", "STRIPE_PROJECTS", "UNRECOGNIZED"],
          },
          stripe: {
            type: ["object", "null"],
            additionalProperties: false,
            properties: {
              customer_id: { type: ["string", "null"] },
              active_subscription: { type: ["string", "null"] },
            },
          },
          aws: {
            type: ["object", "null"],
            additionalProperties: false,
            properties: {
              customer_identifier: { type: ["string", "null"] },
              license_arn: { type: ["string", "null"] },
              subscription_status: { type: ["string", "null"] },
            },
          },
          stripe_customer_id: { type: ["string", "null"] },
        },
      },
      // The older, flat duplicates.
      account_billing_type: {
        enum: ["STRIPE", "AWS_MARKETPLACE", "STRIPE_PROJECTS", "UNRECOGNIZED"],
      },
      active_subscription: { type: ["string", "null"] },
      external_billing_account_id: { type: ["string", "null"] },
      stripe_customer_id: { type: ["string", "null"] },
    },
  },
  // SDK, resources/devboxes: `watchEvictions`.
  DevboxEvictionEventView: {
    type: "object",
    additionalProperties: false,
    required: ["devbox_id", "eviction_deadline_ms"],
    properties: { devbox_id: { type: "string" }, eviction_deadline_ms: { type: "integer" } },
  },
  // No error body is specified. Clients read `message`; `code` is inferred.
  Error: {
    type: "object",
    additionalProperties: false,
    required: ["message"],
    properties: {
      code: { type: ["string", "integer"] },
      message: { type: "string", minLength: 1 },
    },
  },
};

/** Changes of specified views: `views` is the merged map of all of them. */
export function correctViews(views) {
  // SDK: the states of flex capacity came later.
  views.DevboxViewStatus.enum.push("scheduled", "queued");
  // SDK: an account's own agents came later.
  views.InitiatorType.enum.push("reflex");
  // SDK types it `unknown`; every other `*_time_ms` is an integer.
  views.DevboxStateTransition.properties.transition_time_ms = { type: "integer" };
  views.DevboxStateTransition.properties.failure_reason = { type: ["string", "null"] };
  views.DevboxStateTransition.required = ["status", "transition_time_ms"];
  // SDK: half a core is a legal size, so the field is no integer.
  views.LaunchParameters.properties.custom_cpu_cores = { type: ["number", "null"] };
  views.LaunchParameters.properties.provisioning_tier = { enum: ["standard", "flex", null] };
  views.LifecycleConfigurationParameters.properties.lifecycle_hooks = {
    type: ["object", "null"],
    additionalProperties: false,
    properties: {
      suspend_commands: { type: ["array", "null"], items: { type: "string" } },
      suspend_deadline_ms: { type: ["integer", "null"] },
    },
  };
  // SDK: policies by address range came later.
  views.EgressRulesView.properties.allow_runloop_mirrors = { type: "boolean" };
  views.EgressRulesView.properties.allowed_cidrs = {
    type: "array",
    items: {
      type: "object",
      additionalProperties: false,
      required: ["cidr"],
      properties: {
        cidr: { type: "string" },
        ports: {
          type: ["array", "null"],
          items: {
            type: "object",
            additionalProperties: false,
            required: ["port"],
            properties: {
              port: { type: "integer" },
              end_port: { type: ["integer", "null"] },
              protocol: { enum: ["TCP", "UDP", null] },
            },
          },
        },
      },
    },
  };
  views.EgressRulesView.required.push("allow_runloop_mirrors", "allowed_cidrs");
  // SDK: builds that wait for their context came later.
  views.BlueprintBuildStatus.enum.push("awaiting_upload");
  // SDK: the answer is the policy that is gone. A deny-all policy must show an
  // empty list, so the lists may not be left out (required above already).
  return views;
}

/** Routes that the specification lacks. */
export const addedRoutes = [
  // SDK, resources/accounts.
  {
    method: "GET",
    path: "/v1/accounts/me",
    contentType: "application/json",
    errors: [],
    schema: "AccountView",
  },
  // SDK, `createAndAwaitRunning` and with it every create of the object API: a
  // create that waits for the boot as long as the service likes (unknown), then
  // answers with whatever the state is.
  {
    method: "POST",
    path: "/v1/devboxes/create_and_await_running",
    contentType: "application/json",
    errors: [400],
    schema: "DevboxView",
  },
  // SDK, `watchEvictions`.
  {
    method: "GET",
    path: "/v1/devboxes/evictions/watch",
    contentType: "text/event-stream",
    errors: [],
    schema: "DevboxEvictionEventView",
  },
];

/** The specification calls these JSON; clients ask for, and get, events. */
export const eventStreams = [
  "GET /v1/devboxes/{devbox_id}/executions/{execution_id}/stream_stderr_updates",
  "GET /v1/devboxes/{devbox_id}/executions/{execution_id}/stream_stdout_updates",
];

/**
 * Error statuses beyond the specified ones, by route. The specification leaves
 * most of them out; each is what clients map or an inference, as marked.
 */
export const addedErrors = {
  // Certain: a wrong key is 401 on every route.
  "*": [401],
  // Certain for an unknown blueprint id; inferred for policies and snapshots.
  "POST /v1/devboxes": [400],
  "GET /v1/devboxes": [400],
  // Inferred: what has an id can be missing.
  "GET /v1/devboxes/{id}": [404],
  "POST /v1/devboxes/{id}": [404],
  "POST /v1/devboxes/{id}/shutdown": [404],
  "POST /v1/devboxes/{id}/keep_alive": [404],
  "POST /v1/devboxes/{id}/execute_sync": [400, 404],
  "GET /v1/blueprints/{id}": [404],
  "GET /v1/blueprints/{id}/logs": [404],
  "POST /v1/blueprints": [400],
  "GET /v1/devboxes/{devbox_id}/executions/{execution_id}/stream_stderr_updates": [404],
  "GET /v1/devboxes/{devbox_id}/executions/{execution_id}/stream_stdout_updates": [404],
  // Inferred: a Devbox that does not run is 400, as for suspend and tunnels.
  "POST /v1/devboxes/{id}/execute": [400],
  "POST /v1/devboxes/{id}/execute_async": [400],
  "POST /v1/devboxes/{id}/read_file_contents": [400],
  "POST /v1/devboxes/{id}/write_file_contents": [400],
  "POST /v1/devboxes/{id}/upload_file": [400],
  "POST /v1/devboxes/{id}/download_file": [400],
  "POST /v1/devboxes/{id}/snapshot_disk": [400],
  "POST /v1/devboxes/{id}/snapshot_disk_async": [400],
  "POST /v1/devboxes/{id}/create_ssh_key": [400],
  // Unknown on the service: removing a tunnel that is not there.
  "POST /v1/devboxes/{id}/remove_tunnel": [400],
};
