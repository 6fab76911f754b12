/**
 * Live output over connections that break at random: every byte once, in
 * order, and hardly any of it fetched twice. `make soak` tries more seeds.
 */

import assert from "node:assert/strict";
import test from "node:test";
import { same, sandbox, spoil, start, streams, until } from "./support/live.mjs";
import { random, seedOf, times } from "./support/scale.mjs";

/** Bytes of output in the whole events of all connections, which the journal keeps. */
async function receivedBytes(simulator) {
  let bytes = 0;
  let all;
  await until("the end of all connections", async () => {
    all = await streams(simulator);
    return all.every((each) => each.duration_ms !== null);
  });
  for (const { response_body: body } of all) {
    for (const event of (body ?? "").split("\n\n").slice(0, -1)) {
      if (!event.startsWith("data: ")) continue;
      bytes += Buffer.byteLength(JSON.parse(event.slice("data: ".length)).output);
    }
  }
  return bytes;
}

for (const stream_offset of ["end", "start"]) {
  for (const stream_unit of ["raw", "decoded"]) {
    const reading = `${stream_unit} offsets that mark the ${stream_offset} of a chunk`;

    test(`[R21] [D1] 30,000 numbered lines survive 50 random cuts, with ${reading}`, async (t) => {
      // An event is about 1,250 bytes. Where offsets are starts, a connection
      // brings something new only behind the last chunk.
      const chunk = 1000;
      const longest = 5000;
      const { simulator, box } = await sandbox(t, {
        stream_offset,
        stream_unit,
        stream_chunk_bytes: chunk,
        journal_response_bodies: true,
      });
      for (let round = 0; round < times(1); round++) {
        const seed = seedOf(1) + round;
        const next = random(seed);
        const cuts = Array.from({ length: 50 }, () => ({
          cut_at_byte: Math.floor(next() * longest),
          cut_clean: next() < 0.3,
          ...(next() < 0.3 ? { error: { code: next() < 0.5 ? 408 : "503", after_events: 2 } } : {}),
        }));
        await simulator.clearJournal();
        await spoil(simulator, cuts);
        const process = await start(box, "seq 30000");
        const text = await process.stdout.text();
        const lines = Array.from({ length: 30000 }, (_, line) => `${line + 1}\n`);
        same(text, lines.join(""), `seed ${seed}`);
        assert.deepEqual(await process.wait(), { exitCode: 0, output: "complete" });
        // Where it was opened again was never more than a chunk before what had come.
        const offsets = (await streams(simulator)).map((each) => Number(each.query.offset));
        assert.ok(offsets.length > 50, `${offsets.length} connections`);
        assert.deepEqual(
          offsets,
          offsets.toSorted((a, b) => a - b),
        );
        const received = await receivedBytes(simulator);
        assert.ok(received >= text.length, `${received} bytes in the journal`);
        const again = received - text.length;
        assert.ok(
          again <= (cuts.length + 1) * chunk,
          `seed ${seed}: ${again} bytes came again, in ${offsets.length} connections`,
        );
        if (stream_offset === "end") assert.equal(again, 0, `seed ${seed}`);
        await simulator.control("DELETE", "/faults");
      }
    });

    test(`[D2] [C4] replaced bytes and cut characters come once, with ${reading}`, async (t) => {
      const { simulator, box } = await sandbox(t, {
        stream_offset,
        stream_unit,
        stream_chunk_bytes: 700,
      });
      await box.writeFile(
        "/tmp/bytes",
        Buffer.concat([
          Buffer.alloc(1000, 0xff),
          Buffer.from("é".repeat(1000)),
          Buffer.from("END"),
        ]),
        { overwrite: true },
      );
      await spoil(simulator, [{ cut_at_byte: 1500 }, { cut_at_byte: 900 }, { cut_at_byte: 5000 }]);
      const process = await start(box, ["cat", "/tmp/bytes"]);
      same(await process.stdout.text(), `${"\uFFFD".repeat(1000)}${"é".repeat(1000)}END`);
      assert.deepEqual(await process.wait(), { exitCode: 0, output: "complete" });
    });
  }
}

test("[R21] [D1] a day of idle cuts in small: every line once, and a connection for each cut", async (t) => {
  // 20 ms stand for a minute without output, after which the service ends a stream.
  const idle = 0.02;
  const minutes = times(144);
  const { simulator, box } = await sandbox(t, { stream_idle_seconds: idle });
  const lines = Math.ceil((minutes * idle) / 0.2);
  const process = await start(box, `for i in $(seq ${lines}); do echo $i; sleep 0.2; done`);
  const began = Date.now();
  const text = await process.stdout.text();
  const seconds = (Date.now() - began) / 1000;
  same(text, Array.from({ length: lines }, (_, line) => `${line + 1}\n`).join(""));
  assert.deepEqual(await process.wait(), { exitCode: 0, output: "complete" });
  const opened = (await streams(simulator)).length;
  // None waits longer for each cut, and none is opened twice for one.
  assert.ok(opened > minutes / 10, `${opened} connections in ${seconds} s`);
  assert.ok(opened <= seconds / idle + lines + 2, `${opened} connections in ${seconds} s`);
});
