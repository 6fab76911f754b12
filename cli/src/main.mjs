/** The command line: what there is, and what an error looks like. Start reading here. */

import { readFileSync } from "node:fs";
import { isBeachsideError } from "@beachside/runloop/client";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { collect } from "./commands/collect.mjs";
import { copy } from "./commands/copy.mjs";
import { create } from "./commands/create.mjs";
import { exec, kill, logs } from "./commands/exec.mjs";
import { destroy, list, preview } from "./commands/sandboxes.mjs";
import { createSnapshot, listSnapshots, removeSnapshots } from "./commands/snapshots.mjs";
import { Failure } from "./failure.mjs";
import { printable } from "./screen.mjs";
import { INTERRUPTED } from "./session.mjs";

/** Of `exec` and `logs -f` when the failure is not the command's own, as container tools have it. */
const NOT_THE_COMMAND = 125;
const USAGE = 2;

/**
 * @param {readonly string[]} args as after the program's name
 * @returns {Promise<number>} the exit code
 */
export async function main(args) {
  /** Exit code of the command that ran, and whether it passes one of a sandbox through. */
  const run = { exitCode: 0, passes: false };
  /** What holds for every command, once it is known. @type {{ json?: boolean }} */
  let given = {};
  const program = commandLine(
    async (promise, passes = false) => {
      run.passes = passes;
      run.exitCode = await promise();
    },
    (options) => {
      given = options;
    },
  );
  try {
    await program.parseAsync([...args], { from: "user" });
    return run.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    process.stderr.write(
      `${given.json ? JSON.stringify({ error: plain(error) }) : sentences(error)}\n`,
    );
    if (isBeachsideError(error) && error.code === "CANCELLED") return INTERRUPTED;
    if (error instanceof Failure && error.exitCode !== 1) return error.exitCode;
    return run.passes ? NOT_THE_COMMAND : 1;
  }
}

/**
 * @param {(body: () => Promise<number>, passes?: boolean) => Promise<void>} run
 * @param {(options: { json?: boolean }) => void} tell
 */
function commandLine(run, tell) {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const program = new Command("beachside")
    .description("Runloop Devboxes from the command line.")
    .version(version)
    .option("--json", "results as JSON, one line each")
    .option(
      "--simulator",
      "talk to a local simulator, at RUNLOOP_BASE_URL or http://127.0.0.1:8090",
    )
    .enablePositionalOptions()
    .exitOverride()
    .showHelpAfterError("(beachside --help says what there is)")
    .addHelpText(
      "after",
      "\nNeeds RUNLOOP_API_KEY. SANDBOX, SNAPSHOT and PROCESS are an id, the start of one, or a --name.",
    );
  // A subcommand's own options come first; the global ones count everywhere.
  const options = (/** @type {Command} */ command) => {
    const all = /** @type {any} */ (command.optsWithGlobals());
    tell(all);
    return all;
  };

  const newSandbox = (/** @type {Command} */ command) =>
    command
      .option("--image <name>", "a blueprint, by id or name")
      .addOption(
        new Option("--network <policy>", "what it may reach")
          .choices(["blocked", "internet"])
          .default("blocked"),
      )
      .option("--cpu <vcpus>", "at least so many vCPUs", number)
      .option("--memory <MiB>", "at least so much memory", number)
      .option("--lifetime <seconds>", "shut down after so long (default: 900)", number)
      .addOption(
        new Option("--idle <seconds>", "suspend after so long without activity")
          .argParser(number)
          .conflicts("lifetime"),
      )
      .addOption(
        new Option("--preview <access>", "who may open its ports")
          .choices(["protected", "public"])
          .default("protected"),
      )
      .option("-e, --env <NAME=VALUE>", "a variable (again for more)", variable)
      .option("--name <name>", "what to call it here");
  newSandbox(program.command("create").description("Make a sandbox; prints its id."))
    .option("--snapshot <snapshot>", "start from a snapshot")
    .action((_, command) => run(() => create(options(command))));
  newSandbox(program.command("restore").description("The same as create --snapshot."))
    .argument("<snapshot>")
    .action((snapshot, _, command) => run(() => create({ ...options(command), snapshot })));

  program
    .command("exec")
    .description(
      "Run a command; its exit code becomes this program's. Output comes at its end, byte for byte.",
    )
    .argument("<sandbox>")
    .argument("<command...>")
    .passThroughOptions()
    .option("-s, --shell", "the command is one line of shell text")
    .option("-i, --stdin", "send this program's whole input to it")
    .option("-f, --follow", "show output as it comes, as text")
    .option("-d, --detach", "start it and print its process id")
    .option("-C, --cwd <folder>", "where it runs")
    .option("-e, --env <NAME=VALUE>", "a variable (again for more)", variable)
    .option("--timeout <seconds>", "kill it after so long, at most 3600 (default: 600)", number)
    .action((sandbox, words, _, command) => {
      const given = words[0] === "--" ? words.slice(1) : words;
      return run(() => exec(sandbox, given, options(command)), true);
    });
  program
    .command("logs")
    .description(
      "What a process wrote; with -f until its end, whose exit code becomes this program's.",
    )
    .argument("<process>")
    .option("-f, --follow", "go on until it ends")
    .action((process, _, command) => run(() => logs(process, options(command)), true));
  program
    .command("kill")
    .description("End a process and everything that it started.")
    .argument("<process>")
    .action((process, _, command) => run(() => kill(process, options(command))));
  program
    .command("cp")
    .description("Copy a file; one side is SANDBOX:PATH.")
    .argument("<from>")
    .argument("<to>")
    .action((from, to, _, command) => run(() => copy(from, to, options(command))));

  const snapshot = program.command("snapshot").description("Snapshots of a sandbox's disk.");
  snapshot
    .command("create")
    .description("Save a sandbox's disk; prints the snapshot's id.")
    .argument("<sandbox>")
    .option("--name <name>", "what to call it here")
    .action((sandbox, _, command) => run(() => createSnapshot(sandbox, options(command))));
  snapshot
    .command("ls")
    .description("List the account's snapshots.")
    .action((_, command) => run(() => listSnapshots(options(command))));
  snapshot
    .command("rm")
    .description("Delete snapshots.")
    .argument("<snapshot...>")
    .action((names, _, command) => run(() => removeSnapshots(names, options(command))));

  program
    .command("ls")
    .description("List the account's sandboxes.")
    .option("-a, --all", "also those that are gone")
    .action((_, command) => run(() => list(options(command))));
  program
    .command("preview")
    .description("The address of a port of a sandbox.")
    .argument("<sandbox>")
    .argument("<port>", "1 to 65535", number)
    .option("--show-header", "print the secret header that a protected one wants")
    .action((sandbox, port, _, command) => run(() => preview(sandbox, port, options(command))));
  program
    .command("destroy")
    .description("Shut sandboxes down for good.")
    .argument("<sandbox...>")
    .action((names, _, command) => run(() => destroy(names, options(command))));
  program
    .command("gc")
    .description("Find what was made from here and is still there, also after a crash.")
    .option("--yes", "destroy it")
    .action((_, command) => run(() => collect(options(command))));
  takeEverywhere(program);
  return program;
}

/** Global options count behind a command's name too. @param {Command} command */
function takeEverywhere(command) {
  for (const each of command.commands) {
    each.addOption(new Option("--json").hideHelp());
    each.addOption(new Option("--simulator").hideHelp());
    takeEverywhere(each);
  }
}

/** @param {string} text */
function number(text) {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value))
    throw new InvalidArgumentError("It is not a number.");
  return value;
}

/**
 * @param {string} text
 * @param {Record<string, string>} [before]
 */
function variable(text, before = {}) {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

/** An error as JSON. @param {unknown} error */
function plain(error) {
  if (isBeachsideError(error) && typeof error.toJSON === "function") return error.toJSON();
  return { message: error instanceof Error ? error.message : String(error) };
}

/** An error for people, and what it leaves behind. @param {unknown} error */
function sentences(error) {
  const message = error instanceof Error ? error.message : String(error);
  if (!isBeachsideError(error)) return `beachside: ${printable(message)}`;
  const { code, outcome, requestId } = error;
  const lines = [`beachside: ${printable(message)} (${code})`];
  if (requestId !== undefined) lines.push(`request id: ${printable(requestId)}`);
  if (outcome?.submitted === true) {
    if (outcome.killed === true) lines.push("The command was killed.");
    else if (outcome.killed !== undefined) lines.push("The command may still run.");
    const { sandbox, snapshot, operation, kind } = outcome;
    if (sandbox !== undefined) lines.push(`The sandbox goes on: beachside destroy ${sandbox.id}`);
    if (snapshot !== undefined)
      lines.push(`A snapshot may exist: beachside snapshot rm ${snapshot.id}`);
    const made =
      kind === "sandbox_create" || kind === "snapshot_restore" || kind === "snapshot_capture";
    if (made && operation !== undefined) lines.push("`beachside gc` finds out what it made.");
  }
  return lines.join("\n");
}
