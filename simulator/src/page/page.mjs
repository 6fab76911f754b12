// Shows what the simulator holds, once a second, and follows one execution.
//
// Everything that comes from outside enters the page by `textContent`; the page's
// policy forbids any other way. Start reading at `refresh`.

const POLL_MS = 1000;
const FOLLOW_MS = 300;

/** Characters of output that stay on the page. */
const KEPT_CHARACTERS = 200_000;

const at = (id) => document.getElementById(id);

/** An element with this text or these children. */
function element(name, { className, ...properties } = {}, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** Draws a part of the page again, if what it shows has changed. */
const drawn = new Map();
function draw(id, shown, make) {
  const state = JSON.stringify(shown);
  if (drawn.get(id) === state) return;
  drawn.set(id, state);
  const focused = document.activeElement?.dataset?.execution;
  at(id).replaceChildren(...make());
  if (focused)
    at(id)
      .querySelector(`[data-execution="${CSS.escape(focused)}"]`)
      ?.focus();
}

const MOODS = { running: "good", suspended: "busy", failure: "bad", shutdown: "quiet" };

function devbox(box) {
  const mood = MOODS[box.shown_status] ?? "busy";
  const truth = box.true_status === box.shown_status ? undefined : ` (truly ${box.true_status})`;
  return element(
    "article",
    { className: "box" },
    element(
      "h3",
      {},
      element("span", {}, box.name ?? "unnamed"),
      element("span", { className: "id" }, box.id),
      element("span", { className: `status ${mood}` }, box.shown_status, truth ?? ""),
    ),
    ...box.executions.map((each) => execution(box, each)),
    ...box.terminals.map(terminal),
    box.executions.length + box.terminals.length === 0
      ? element("p", { className: "quiet" }, "Nothing ran here.")
      : undefined,
    box.more_executions > 0
      ? element("p", { className: "quiet" }, `and ${box.more_executions} older`)
      : undefined,
  );
}

function execution(box, each) {
  const key = `${box.id}/${each.execution_id}`;
  const shell = each.shell_name ? `${each.shell_name}: ` : "";
  const button = element(
    "button",
    {
      className: "execution",
      type: "button",
      "data-execution": key,
      "aria-pressed": String(followed?.key === key),
    },
    element("code", {}, shell + each.command),
    ending(each),
  );
  button.addEventListener("click", () => follow(key, box, each));
  return button;
}

function ending({ status, exit_status }) {
  if (status !== "completed") return element("span", { className: "status busy" }, status);
  const mood = exit_status === 0 ? "good" : "bad";
  return element("span", { className: `status ${mood}` }, `exit ${exit_status}`);
}

function terminal({ session_name, cols, rows, attached }) {
  const size = `${cols} × ${rows}, ${attached ? "attached" : "detached"}`;
  return element("p", { className: "quiet" }, `terminal ${session_name}, ${size}`);
}

const COLUMNS = ["#", "Time", "Request", "Answer", "ms", "Faults"];

function request(each) {
  const status = each.status ?? each.outcome;
  const isBad = each.unexpected || each.status === null || each.status >= 400;
  const note = each.unexpected
    ? " no such route"
    : each.outcome === "answered"
      ? ""
      : ` ${each.outcome}`;
  return element(
    "tr",
    {},
    element("td", { className: "number" }, String(each.sequence)),
    element("td", {}, new Date(each.time_ms).toLocaleTimeString()),
    element("td", { className: "mono" }, `${each.method} ${each.path}`),
    element(
      "td",
      { className: isBad ? "bad" : "good" },
      each.status === null ? status : status + note,
    ),
    element(
      "td",
      { className: "number" },
      each.duration_ms === null ? "…" : String(each.duration_ms),
    ),
    element("td", { className: "mono" }, each.faults.join(", ")),
  );
}

function table(entries) {
  const heads = COLUMNS.map((title) =>
    element("th", { className: title === "#" || title === "ms" ? "number" : "" }, title),
  );
  const head = element("thead", {}, element("tr", {}, ...heads));
  return element("table", {}, head, element("tbody", {}, ...entries.map(request)));
}

function fault({ id, match, action, seen, acted }) {
  const { type, ...rest } = action;
  return element(
    "article",
    { className: "box" },
    element(
      "h3",
      {},
      element("span", {}, type),
      element("span", { className: "id" }, id),
      element("span", { className: "quiet" }, `acted on ${acted} of ${seen}`),
    ),
    element("code", {}, [given(match), given(rest)].join(" ")),
  );
}

/** The fields that say something, as JSON. */
function given(fields) {
  const isSaid = (value) => value !== null && value !== 0 && JSON.stringify(value) !== "{}";
  return JSON.stringify(
    Object.fromEntries(Object.entries(fields).filter(([, value]) => isSaid(value))),
  );
}

function nothing(text) {
  return [element("p", { className: "quiet" }, text)];
}

/** The execution whose output is shown, and how far it was read. */
let followed;

function follow(key, box, { execution_id, command }) {
  followed = {
    key,
    path: `${encodeURIComponent(box.id)}/executions/${encodeURIComponent(execution_id)}`,
  };
  at("output").replaceChildren();
  at("output-of").textContent = command;
  for (const button of document.querySelectorAll("button.execution")) {
    button.setAttribute("aria-pressed", String(button.dataset.execution === key));
  }
  followOn(followed);
}

async function followOn(current) {
  const pane = at("output");
  while (current === followed) {
    const query = new URLSearchParams(current.read ?? {});
    const response = await fetch(`/_simulator/devboxes/${current.path}/output?${query}`).catch(
      () => undefined,
    );
    if (current !== followed) return;
    if (response?.ok) {
      const news = await response.json();
      if (current !== followed) return;
      const wasAtEnd = pane.scrollHeight - pane.scrollTop - pane.clientHeight < 8;
      for (const name of ["stdout", "stderr"]) {
        const text = plain(news[name].text);
        if (text) pane.append(element("span", { className: name }, text));
      }
      while (pane.textContent.length > KEPT_CHARACTERS && pane.childNodes.length > 1)
        pane.firstChild.remove();
      if (wasAtEnd) pane.scrollTop = pane.scrollHeight;
      current.read = { stdout: news.stdout.next, stderr: news.stderr.next };
      if (news.is_whole) return;
      if (news.has_more) continue;
    } else if (response) {
      at("output-of").textContent = "This execution is not known any more.";
      return;
    }
    await pause(FOLLOW_MS);
  }
}

/** The text without what moves a terminal's cursor or colours it. */
function plain(text) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  return text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*\u0007/g, "");
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function refresh() {
  const health = at("health");
  try {
    const response = await fetch("/_simulator/overview");
    const now = await response.json();
    const time = new Date(now.health.time_ms).toLocaleString();
    health.classList.remove("lost");
    health.textContent = `version ${now.health.version} · ${now.health.isolation} · virtual time ${time}`;
    const { devboxes, faults, requests } = now;
    at("devboxes-count").textContent = String(now.health.devboxes);
    at("faults-count").textContent = String(faults.length);
    at("requests-count").textContent = requests.length > 0 ? `newest ${requests.length}` : "0";
    draw("devboxes", devboxes, () =>
      devboxes.length ? devboxes.map(devbox) : nothing("None yet."),
    );
    draw("faults", faults, () => (faults.length ? faults.map(fault) : nothing("None in force.")));
    draw("requests", requests, () => (requests.length ? [table(requests)] : nothing("None yet.")));
  } catch {
    health.classList.add("lost");
    health.textContent = "The simulator does not answer.";
  }
}

for (;;) {
  await refresh();
  await pause(POLL_MS);
}
