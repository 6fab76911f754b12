/**
 * Random faults of the simulator, and random readings of what is unknown about
 * the service.
 *
 * A fault may lose, spoil, delay or refuse anything; it never lies about what
 * was done: no refusal of what was carried out, no "not found" for what is
 * there. Against such a service nothing could be known.
 */

const between = (next, least, most) => least + Math.floor(next() * (most - least + 1));
export const pick = (next, items) => items[Math.floor(next() * items.length)];

/** Picks from `[weight, value]` pairs. */
export function weighted(next, pairs) {
  let at = next() * pairs.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, value] of pairs) {
    at -= weight;
    if (at < 0) return value;
  }
  return pairs.at(-1)[1];
}

const html = (status) => ({
  type: "replace_reply",
  status,
  text: "<html>bad gateway</html>",
  headers: { "content-type": "text/html" },
});

const ANY = [
  [5, (next) => ({ type: "latency", milliseconds: between(next, 1, 150) })],
  [5, (next) => ({ type: "drop_request", reset: next() < 0.5 })],
  [8, (next) => ({ type: "drop_reply", reset: next() < 0.5 })],
  [5, (next) => html(pick(next, [500, 502, 503, 504]))],
  [4, (next) => ({ type: "refuse", status: pick(next, [500, 502, 503]) })],
  [3, (next) => ({ type: "rate_limit", retry_after: pick(next, ["0", "1", "soon", "-1", null]) })],
  [2, () => ({ type: "refuse", status: 408 })],
  [1, (next) => ({ type: "refuse", status: pick(next, [409, 422]) })],
  [3, () => ({ type: "halve_reply" })],
  [3, (next) => ({ type: "truncate_reply", bytes: between(next, 0, 200) })],
  [2, (next) => ({ type: "slow_reply", chunk_bytes: between(next, 1, 60), milliseconds: 5 })],
  [2, (next) => ({ type: "close_idle", milliseconds: between(next, 1, 50) })],
  [3, (next) => ({ type: "delay_reply", milliseconds: between(next, 1, 300) })],
  [1, () => ({ type: "hold_reply" })],
  [1, () => ({ type: "hold_request" })],
];

const LIST = [
  [2, () => ({ type: "list", ignore_filters: true })],
  [2, () => ({ type: "list", identical_timestamps: true })],
  [1, () => ({ type: "list", vanished_cursor: true })],
  [1, () => ({ type: "list", empty_page_with_more: true })],
  [1, () => ({ type: "list", repeated_cursor: true })],
];

const STREAM = [
  [4, (next) => ({ type: "sse", cut_at_byte: between(next, 0, 3000), cut_clean: next() < 0.5 })],
  [1, (next) => ({ type: "sse", chunk_bytes: between(next, 1, 50) })],
  [1, (next) => ({ type: "sse", overlap_bytes: between(next, 1, 500) })],
  [
    1,
    (next) => ({ type: "sse", bad_end: pick(next, ["no_blank_line", "no_newline", "half_event"]) }),
  ],
  [
    1,
    (next) => ({
      type: "sse",
      error: { code: 408, message: "idle", after_events: between(next, 0, 2) },
    }),
  ],
  [1, () => ({ type: "sse", newline: "crlf", comment: " ping", data: "many_lines" })],
];

const CREATE = [
  [
    2,
    () => ({ type: "devbox_script", when: "running", steps: [{ status: "shutdown", views: 1 }] }),
  ],
  [
    1,
    () => ({ type: "devbox_script", when: "running", steps: [{ status: "migrating", views: 2 }] }),
  ],
  [2, () => ({ type: "edit_reply", remove: ["/id"] })],
  [1, () => ({ type: "edit_reply", remove: ["/launch_parameters/network_policy_id"] })],
];

const CAPTURE = [
  [2, () => ({ type: "snapshot_outcome", milliseconds: 50, error: "disk on fire" })],
  [1, () => ({ type: "snapshot_outcome", milliseconds: 50, vanish: true })],
];

const box = (rest) => `/v1/devboxes/*/${rest}`;

/** Where a fault strikes, and what may strike there. */
const PLACES = [
  [4, { match: { path: "/v1/**" }, actions: ANY }],
  [5, { match: { method: "POST", path: "/v1/devboxes" }, actions: [...ANY, ...CREATE] }],
  [2, { match: { method: "GET", path: "/v1/devboxes" }, actions: [...ANY, ...LIST] }],
  [6, { match: { path: box("execute") }, actions: ANY }],
  [4, { match: { path: box("wait_for_status") }, actions: ANY }],
  [3, { match: { path: box("executions/*/wait_for_status") }, actions: ANY }],
  [2, { match: { path: box("executions/*/kill") }, actions: ANY }],
  [4, { match: { path: box("executions/*/stream_stdout_updates") }, actions: [...ANY, ...STREAM] }],
  [2, { match: { path: box("upload_file") }, actions: ANY }],
  [2, { match: { path: box("download_file") }, actions: ANY }],
  [2, { match: { path: box("suspend") }, actions: ANY }],
  [2, { match: { path: box("resume") }, actions: ANY }],
  [3, { match: { path: box("shutdown") }, actions: ANY }],
  [3, { match: { path: box("snapshot_disk_async") }, actions: [...ANY, ...CAPTURE] }],
  [2, { match: { path: "/v1/devboxes/disk_snapshots/**" }, actions: ANY }],
  [
    2,
    { match: { method: "GET", path: "/v1/devboxes/disk_snapshots" }, actions: [...ANY, ...LIST] },
  ],
  [2, { match: { path: "/v1/network-policies/**" }, actions: ANY }],
];

/** One rule, for the next few requests that it fits. */
export function randomFault(next) {
  const { match, actions } = weighted(next, PLACES);
  return {
    match: { ...match, after: between(next, 0, 2), count: between(next, 1, 2) },
    action: weighted(next, actions)(next),
  };
}

/** One of the readings of what is unknown or inferred about the service. */
export function randomSettings(next) {
  return {
    execution_id_is_command_id: next() < 0.7,
    dedupe_command_ids: next() < 0.5,
    optimistic_zero: pick(next, ["immediate", "default"]),
    optimistic_max_seconds: pick(next, [25, 0.1]),
    completion_waits_for_output: next() < 0.7,
    executions_survive_suspend: next() < 0.5,
    // A bare null would be JSON's.
    empty_output: pick(next, ["text", "omitted", '"null"']),
    stream_offset: pick(next, ["start", "end"]),
    stream_unit: pick(next, ["raw", "decoded"]),
    stream_chunk_bytes: pick(next, [500, 16384]),
    shell: pick(next, ["bash", "dash"]),
    unknown_cursor: pick(next, ["bad_request", "empty_page"]),
    list_order: pick(next, ["newest", "oldest"]),
    boot_ms: between(next, 0, 30),
    suspend_ms: between(next, 0, 30),
    resume_ms: between(next, 0, 30),
    snapshot_ms: between(next, 0, 30),
  };
}
