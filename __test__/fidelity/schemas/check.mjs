// Holds every answer in a simulator's journal against the service's schemas.
//
// Owns the merge of the specified views with `overlay.mjs` and the reading of
// journal entries; knows nothing of the tests that made them. Start reading at
// `mismatches`.

import { readdirSync, readFileSync } from "node:fs";
import Ajv from "ajv/dist/2020.js";
import { addedErrors, addedRoutes, addedViews, correctViews, eventStreams } from "./overlay.mjs";

const directory = new URL("./", import.meta.url);

function readJson(name) {
  return JSON.parse(readFileSync(new URL(name, directory), "utf8"));
}

function loadViews() {
  const files = readdirSync(new URL("views/", directory));
  const specified = Object.assign({}, ...files.map((name) => readJson(`views/${name}`)));
  return { ...correctViews(specified), ...addedViews };
}

function loadRoutes() {
  const routes = [...readJson("routes.json"), ...addedRoutes].map((route) => {
    const name = `${route.method} ${route.path}`;
    return {
      ...route,
      name,
      contentType: eventStreams.includes(name) ? "text/event-stream" : route.contentType,
      errors: [...route.errors, ...(addedErrors[name] ?? []), ...addedErrors["*"]],
      pattern: new RegExp(`^${route.path.replace(/\{\w+\}/g, "[^/]+")}$`),
      literal: !route.path.includes("{"),
    };
  });
  // A literal path wins over one with an id in that place.
  return routes.sort((left, right) => Number(right.literal) - Number(left.literal));
}

const ajv = new Ajv({ strict: true, strictTypes: false, allowUnionTypes: true, allErrors: true });
ajv.addSchema({ $id: "views", $defs: loadViews() });
const routes = loadRoutes();

/** The route of a request, or undefined. */
export function routeOf(method, path) {
  return routes.find((route) => route.method === method && route.pattern.test(path));
}

/** What is wrong with a value that should be such a view: a list of sentences. */
export function viewProblems(view, value) {
  const validate = ajv.getSchema(`views#/$defs/${view}`);
  if (!validate) return [`no view is called ${view}`];
  if (validate(value)) return [];
  return validate.errors.map((error) => {
    const extra = error.params.additionalProperty ?? error.params.allowedValues?.join(", ");
    return `${view}${error.instancePath}: ${error.message}${extra ? ` (${extra})` : ""}`;
  });
}

/** The values of an event stream's `data:` fields, and its error events apart. */
export function readEvents(text) {
  const events = text
    .split(/\r?\n\r?\n/)
    .map((block) => {
      const lines = block.split(/\r?\n/).filter((line) => line !== "" && !line.startsWith(":"));
      const field = (name) =>
        lines
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
      return { name: field("event")[0], data: field("data").join("\n") };
    })
    .filter(({ data }) => data !== "");
  return {
    chunks: events.filter(({ name }) => name !== "error").map(({ data }) => JSON.parse(data)),
    errors: events.filter(({ name }) => name === "error").map(({ data }) => JSON.parse(data)),
  };
}

function bodyProblems(route, body) {
  if (route.contentType === "text/event-stream") {
    // A client that hangs up cuts the last event; only whole ones count.
    const whole = body.slice(0, body.lastIndexOf("\n\n") + 2);
    const { chunks, errors } = readEvents(whole);
    return [
      ...chunks.flatMap((chunk) => viewProblems(route.schema, chunk)),
      ...errors.flatMap((error) => viewProblems("Error", error)),
    ];
  }
  return viewProblems(route.schema, body);
}

/** What is wrong with one journal entry: a list of sentences. */
export function entryProblems(entry) {
  const route = routeOf(entry.method, entry.path);
  if (!route) return ["no such route is specified"];
  // Still held, left by the client, or spoiled because a test asked for it.
  if (entry.status === null || entry.faults.length > 0) return [];
  const type = entry.response_content_type?.split(";")[0];
  if (entry.status !== 200) {
    if (!route.errors.includes(entry.status)) return [`status ${entry.status} is not specified`];
    if (type !== "application/json") return [`an error of type ${type}`];
    return viewProblems("Error", entry.response_body);
  }
  if (type !== route.contentType) return [`content type ${type}, not ${route.contentType}`];
  if (!route.schema) return [];
  // What a client left in the middle of was not kept whole.
  if (entry.outcome === "cut" && type === "application/json") return [];
  if (
    entry.response_body === null &&
    !(entry.outcome !== "answered" && type !== "application/json")
  )
    return ["the answer was not kept"];
  return entry.response_body === null ? [] : bodyProblems(route, entry.response_body);
}

/** `{ checked, problems }` of a whole journal, as `/_simulator/journal` gives it. */
export function mismatches(journal) {
  const problems = journal.entries.flatMap((entry) =>
    entryProblems(entry).map(
      (problem) => `#${entry.sequence} ${entry.method} ${entry.path} (${entry.status}): ${problem}`,
    ),
  );
  return {
    checked: journal.entries.length,
    problems: [
      ...(journal.dropped > 0 ? [`${journal.dropped} requests are no longer in the journal`] : []),
      ...journal.unexpected.map((line) => `the simulator has no route for ${line}`),
      ...problems,
    ],
  };
}
