/** Contract: commands, processes, files, previews. */

import assert from "node:assert/strict";
import type { Progress } from "../progress.js";
import { contractCase, rejection, rejectsWith } from "./case.js";

const bytes = (...values: number[]) => Uint8Array.from(values);

export const commands = [
  contractCase("argv stays separate, whatever is in it", {
    needs: ["exec.run"],
    async run({ sandbox }) {
      const box = await sandbox();
      const words = ["a b", "", "it's", "$(id)", "`id`", "*", "a\nb", "-n", "\\", '"', "é", "~"];
      const result = await box.exec(["printf", "[%s]", ...words]);
      assert.equal(result.stdoutText(), words.map((word) => `[${word}]`).join(""));
      assert.equal(result.exitCode, 0);
    },
    refused: async ({ sandbox }) => (await sandbox()).exec("true"),
  }),

  contractCase("output is exact bytes on both streams, and a non-zero exit is a result", {
    needs: ["exec.run"],
    async run({ sandbox }) {
      const box = await sandbox();
      const text = String.raw`printf '\377\376\000\200ok'; printf 'err\n' >&2; exit 7`;
      const result = await box.exec(text);
      assert.deepEqual(new Uint8Array(result.stdout), bytes(255, 254, 0, 128, 111, 107));
      assert.equal(result.stderrText(), "err\n");
      assert.equal(result.exitCode, 7);
      assert.deepEqual([result.stdoutBytes, result.stderrBytes], [6, 4]);
      await rejectsWith(box.exec("exit 3", { check: true }), "COMMAND_FAILED");
    },
  }),

  contractCase("a command has its directory, its environment and all of its input", {
    needs: ["exec.run"],
    async run({ sandbox }) {
      const box = await sandbox({ env: { CONTRACT_A: "from create" } });
      const result = await box.exec('pwd; printf "%s|%s|" "$CONTRACT_A" "$CONTRACT_B"; cat', {
        cwd: "/tmp",
        env: { CONTRACT_B: "it's $HOME" },
        stdin: "a\n\n",
      });
      assert.equal(result.stdoutText(), "/tmp\nfrom create|it's $HOME|a\n\n");
      assert.equal((await box.exec(["cat"])).stdoutBytes, 0);
    },
  }),

  contractCase("output beyond the limit is cut, and its true length is told", {
    needs: ["exec.run"],
    async run({ sandbox }) {
      const box = await sandbox();
      const result = await box.exec("printf 0123456789; printf ab >&2", { maxOutputBytes: 4 });
      assert.equal(result.stdoutText(), "0123");
      assert.deepEqual(
        [result.stdoutTruncated, result.stdoutBytes, result.stderrTruncated, result.stderrBytes],
        [true, 10, false, 2],
      );
    },
  }),

  contractCase("waiting for output takes nothing from others, and a kill ends a process", {
    needs: ["processes.stream", "processes.kill"],
    async run({ sandbox }) {
      const box = await sandbox();
      const process = await box.processes.start({ command: "echo rea; echo dy 42; exec sleep 60" });
      const match = await process.waitForOutput(/dy (\d+)/, { timeoutSeconds: 30 });
      assert.deepEqual([match.stream, match.captures], ["stdout", ["42"]]);
      const reading = process.stdout.text();
      await process.kill();
      const { exitCode } = await process.wait();
      assert.notEqual(exitCode, 0);
      await process.kill();
      assert.equal(await reading, "rea\ndy 42\n");
      await rejectsWith(process.waitForOutput("never"), "NOT_RUNNING");
    },
  }),

  contractCase("a transfer tells how far it has come, and ends with all of it", {
    needs: ["files.write", "files.read"],
    async run({ sandbox }) {
      const box = await sandbox();
      const content = new Uint8Array(1024 * 1024).fill(7);
      const told: Progress[] = [];
      const onProgress = (progress: Progress) => void told.push(progress);
      await box.writeFile("/tmp/contract-progress", content, { overwrite: true, onProgress });
      const done = { phase: "done", bytes: content.length, totalBytes: content.length };
      assert.deepEqual(told[0], { ...done, phase: "uploading", bytes: 0 });
      assert.deepEqual(told.at(-1), done);
      told.length = 0;
      const read = await box.readFile("/tmp/contract-progress", { onProgress });
      assert.equal(read.length, content.length);
      assert.equal(told[0]?.phase, "downloading");
      assert.deepEqual(told.at(-1), done);
    },
  }),

  contractCase("a port on which nothing listens is waited for no longer than asked", {
    needs: ["exec.run"],
    async run({ sandbox }) {
      const box = await sandbox();
      // Registered for no service, and below the ports that systems give out.
      await rejectsWith(box.waitForPort(9, { timeoutSeconds: 0.2 }), "DEADLINE_EXCEEDED");
    },
  }),

  contractCase("a live process streams its output and gives its exit", {
    needs: ["processes.stream", "processes.reopen"],
    async run({ sandbox }) {
      const box = await sandbox();
      const process = await box.processes.start({
        command: "echo one; echo two >&2; echo three; exit 5",
        output: { mode: "stream" },
      });
      const [stdout, stderr, exit] = await Promise.all([
        process.stdout.text(),
        process.stderr.text(),
        process.wait(),
      ]);
      assert.deepEqual([stdout, stderr], ["one\nthree\n", "two\n"]);
      assert.deepEqual(exit, { exitCode: 5, output: "complete" });
      const again = await box.processes.get(JSON.parse(JSON.stringify(process.reference)));
      assert.equal((await again.status()).state, "exited");
      await again.detach();
    },
    refused: async ({ sandbox }) => (await sandbox()).processes.start({ command: "true" }),
  }),

  contractCase("terminate() ends a live process, and detach() leaves it", {
    needs: ["processes.stream", "processes.reopen"],
    async run({ sandbox }) {
      const box = await sandbox();
      const process = await box.processes.start({ command: ["sleep", "600"] });
      assert.equal((await process.status()).state, "running");
      await process.detach();
      const again = await box.processes.get(process.reference);
      assert.equal((await again.status()).state, "running");
      await again.terminate();
      assert.equal((await again.status()).state, "exited");
    },
  }),

  contractCase("a file comes back as it was written, and one that is missing is NOT_FOUND", {
    needs: ["files.write", "files.read"],
    async run({ sandbox, folder }) {
      const box = await sandbox();
      const content = Uint8Array.from({ length: 4096 }, (_, index) => index % 256);
      await box.writeFile(`${folder}/contract file`, content, { overwrite: true });
      assert.deepEqual(new Uint8Array(await box.readFile(`${folder}/contract file`)), content);
      await box.writeFile(`${folder}/contract file`, "", { overwrite: true });
      assert.equal((await box.readFile(`${folder}/contract file`)).length, 0);
      await rejectsWith(box.readFile("/tmp/contract-missing"), "NOT_FOUND");
    },
    refused: async ({ sandbox }, feature) => {
      const box = await sandbox();
      return feature === "files.read"
        ? box.readFile("/tmp/a")
        : box.writeFile("/tmp/a", "", { overwrite: true });
    },
  }),

  contractCase("a preview has a URL, and a header exactly where it is protected", {
    needs: ["previews.open"],
    async run({ sandbox }) {
      const box = await sandbox();
      const { url, access, headers } = await box.preview(3000);
      assert.match(new URL(url).protocol, /^https?:$/);
      assert.equal(Object.keys(headers).length > 0, access === "protected");
      await rejectsWith(box.preview(0), "INVALID_ARGUMENT");
    },
    refused: async ({ sandbox }) => (await sandbox()).preview(3000),
  }),

  contractCase("a wrong argument is refused by its name and shows no value", {
    async run({ sandbox }) {
      const box = await sandbox();
      const error = await rejection(box.exec(["true"], { env: { A: "s3cret\0" } }));
      assert.equal((error as { code?: unknown }).code, "INVALID_ARGUMENT");
      assert.match(String(error), /env\.A/);
      assert.doesNotMatch(String(error), /s3cret/);
    },
  }),
];
