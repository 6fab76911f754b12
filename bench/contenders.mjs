/**
 * What is measured against what: each contender as its own documentation says to use it.
 *
 * `open(job)` connects and gives what the contender can do of:
 *   exec(command)           { exitCode, stdout }, stdout as text
 *   stream(command, take)   calls take(text) for each piece of standard output
 *   read(path)              the bytes of a file
 *   write(path, content)    writes bytes
 * What is missing is shown as a dash.
 */

import { randomUUID } from "node:crypto";

export const KEY = "ak_bench_0123456789";

const JSON_HEADERS = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };

export const contenders = {
  ours: async ({ url }) => {
    const { Beachside } = await import("beachside");
    const { runloop } = await import("@beachside/runloop");
    const config = { apiKey: KEY, baseUrl: url, network: "internet" };
    const client = await Beachside.connect(runloop(config));
    const sandbox = await client.sandboxes.create();
    return {
      client,
      exec: async (command) => {
        const result = await sandbox.exec(command);
        return { exitCode: result.exitCode, stdout: result.stdoutText() };
      },
      stream: async (command, take) => {
        const process = await sandbox.processes.start({ command, output: { mode: "stream" } });
        for await (const text of process.stdout) take(text);
      },
      read: (path) => sandbox.readFile(path),
      write: (path, content) => sandbox.writeFile(path, content, { overwrite: true }),
    };
  },

  sdk: ({ url, box }) => sdk({ baseURL: url, http2: false }, box),

  "sdk-h2": ({ url, box }) => sdk({ baseURL: url }, box),

  computesdk: async ({ url, box }) => {
    process.env.RUNLOOP_BASE_URL = url;
    const { runloop } = await import("@computesdk/runloop");
    const sandbox = await runloop({ apiKey: KEY }).sandbox.getById(box);
    return { exec: (command) => sandbox.runCommand(command) };
  },

  fetch: async ({ url, box }) => {
    const base = `${url}/v1/devboxes/${box}`;
    const post = async (route, body) => {
      const init = { method: "POST", headers: JSON_HEADERS, body: JSON.stringify(body) };
      return checked(await fetch(`${base}/${route}`, init));
    };
    return {
      exec: async (command) => result(await (await post("execute", started(command))).json()),
      stream: async (command, take) => {
        const started = await (await post("execute_async", { command })).json();
        const path = `executions/${started.execution_id}/stream_stdout_updates`;
        const answer = await fetch(`${base}/${path}`, { headers: JSON_HEADERS });
        await events(checked(answer).body, take);
      },
      read: async (path) =>
        new Uint8Array(await (await post("download_file", { path })).arrayBuffer()),
      write: async (path, content) => {
        const body = new FormData();
        body.set("path", path);
        body.set("file", new Blob([content]));
        const headers = { authorization: JSON_HEADERS.authorization };
        const init = { method: "POST", headers, body };
        await checked(await fetch(`${base}/upload_file`, init)).text();
      },
    };
  },

  undici: async ({ url, box }) => {
    const { Agent, FormData, request } = await import("undici");
    // Its default: as many connections as there are requests at once.
    const dispatcher = new Agent();
    const base = `${url}/v1/devboxes/${box}`;
    const post = async (route, body) => {
      const options = { method: "POST", headers: JSON_HEADERS, body: JSON.stringify(body) };
      return (await request(`${base}/${route}`, { ...options, dispatcher })).body;
    };
    return {
      exec: async (command) => result(await (await post("execute", started(command))).json()),
      stream: async (command, take) => {
        const started = await (await post("execute_async", { command })).json();
        const path = `executions/${started.execution_id}/stream_stdout_updates`;
        const { body } = await request(`${base}/${path}`, { headers: JSON_HEADERS, dispatcher });
        await events(body, take);
      },
      read: async (path) => (await post("download_file", { path })).bytes(),
      write: async (path, content) => {
        const body = new FormData();
        body.set("path", path);
        body.set("file", new Blob([content]));
        const headers = { authorization: JSON_HEADERS.authorization };
        const options = { method: "POST", headers, body, dispatcher };
        await (await request(`${base}/upload_file`, options)).body.text();
      },
    };
  },
};

async function sdk(options, box) {
  const { RunloopSDK } = await import("@runloop/api-client");
  const client = new RunloopSDK({ bearerToken: KEY, ...options });
  const devbox = client.devbox.fromId(box);
  const { devboxes } = client.api;
  return {
    exec: async (command) => {
      const execution = await devbox.cmd.exec(command);
      return { exitCode: execution.exitCode, stdout: await execution.stdout() };
    },
    stream: async (command, take) => {
      const { execution_id } = await devboxes.executeAsync(box, { command });
      const stream = await devboxes.executions.streamStdoutUpdates(box, execution_id, {});
      for await (const { output } of stream) take(output);
    },
    read: async (path) => {
      const answer = await devboxes.downloadFile(box, { path });
      return new Uint8Array(await answer.arrayBuffer());
    },
    write: async (path, content) => {
      const { toFile } = await import("@runloop/api-client");
      await devboxes.uploadFile(box, { path, file: await toFile(content, "file") });
    },
  };
}

/** The least that reads an event stream. */
async function events(body, take) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of body) {
    rest += decoder.decode(piece, { stream: true });
    const whole = rest.split("\n\n");
    rest = whole.pop();
    for (const event of whole) take(JSON.parse(event.slice("data: ".length)).output);
  }
}

/** The service wants an id of the caller's for each command. */
function started(command) {
  return { command, command_id: randomUUID(), optimistic_timeout: 25 };
}

function result(view) {
  return { exitCode: view.exit_status, stdout: view.stdout };
}

function checked(answer) {
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer;
}
