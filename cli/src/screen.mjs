/**
 * What a command shows: results on stdout, everything else on stderr, so that
 * a pipe gets results only. With `--json` a result is one line of JSON.
 */

import cliProgress from "cli-progress";

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
   * A bar on a terminal, nothing elsewhere. Without a total it shows time only.
   *
   * @param {string} task
   */
  progress(task) {
    if (this.#json || !process.stderr.isTTY) return () => {};
    const started = Date.now();
    const bar = new cliProgress.SingleBar({
      format: `${task} {bar} {seconds} s {detail}`,
      hideCursor: true,
      clearOnComplete: true,
      stream: process.stderr,
      fps: 8,
    });
    bar.start(1, 0, { seconds: 0, detail: "" });
    this.#bar = bar;
    return (/** @type {{ part?: number, detail?: string }} */ { part, detail = "" }) => {
      const seconds = Math.round((Date.now() - started) / 1000);
      bar.update(part ?? 0, { seconds, detail });
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
