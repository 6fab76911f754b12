/**
 * What a command shows: results on stdout, everything else on stderr, so that
 * a pipe gets results only. With `--json` a result is one line of JSON.
 */

import cliProgress from "cli-progress";

/** @import { Progress } from "@beachside/runloop/client" */

export class Screen {
  #json;
  /** @type {cliProgress.SingleBar | undefined} */
  #bar;

  /** @param {boolean} json */
  constructor(json) {
    this.#json = json;
  }

  /** @param {unknown} value for `--json` @param {string} text for people */
  result(value, text) {
    this.stop();
    process.stdout.write(`${this.#json ? JSON.stringify(value) : text}\n`);
  }

  /** @param {readonly Record<string, unknown>[]} rows @param {readonly string[]} columns */
  table(rows, columns) {
    this.stop();
    if (this.#json) return void process.stdout.write(`${JSON.stringify(rows)}\n`);
    const cells = [
      columns.map((column) => column.toUpperCase()),
      ...rows.map((row) => columns.map((column) => printable(row[column] ?? "-"))),
    ];
    const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]?.length ?? 0)));
    for (const line of cells) {
      const padded = line.map((cell, at) => cell.padEnd(widths[at] ?? 0));
      process.stdout.write(`${padded.join("  ").trimEnd()}\n`);
    }
  }

  /** A remark for people. @param {string} text */
  note(text) {
    this.stop();
    process.stderr.write(`${printable(text)}\n`);
  }

  /**
   * Shows how far a long call has come: a bar on a terminal, nothing elsewhere.
   * What it gives is the call's `onProgress`.
   *
   * @param {string} task
   * @returns {(progress: Progress) => void}
   */
  progress(task) {
    if (this.#json || !process.stderr.isTTY) return () => {};
    const bar = new cliProgress.SingleBar({
      format: `${task} {bar} {duration_formatted} {detail}`,
      hideCursor: true,
      clearOnComplete: true,
      stream: process.stderr,
      // Time goes on while nothing is told.
      synchronousUpdate: false,
      fps: 8,
    });
    bar.start(1, 0, { detail: "" });
    this.#bar = bar;
    return ({ phase, state, bytes, totalBytes }) => {
      if (this.#bar !== bar) return;
      const part =
        bytes !== undefined && totalBytes ? bytes / totalBytes : phase === "done" ? 1 : 0;
      const size = bytes === undefined ? "" : ` ${megabytes(bytes)} MB`;
      bar.update(part, { detail: printable(`${state ?? phase}${size}`) });
    };
  }

  stop() {
    this.#bar?.stop();
    this.#bar = undefined;
  }
}

/**
 * What others may have chosen (names, messages of the service) cannot move the
 * cursor or change colours.
 *
 * @param {unknown} value
 */
export function printable(value) {
  return String(value).replace(/[\p{Cc}\p{Cf}]/gu, (character) =>
    character === "\n" || character === "\t" ? character : "\uFFFD",
  );
}

/** @param {number} bytes */
function megabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}
