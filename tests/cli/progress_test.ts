import assert from "node:assert/strict";
import {
  benchLine,
  downloadLine,
  duration,
  progressLine,
  promptLine,
  statusLine,
} from "../../src/cli/terminal/progress.ts";
import { warn } from "../../src/cli/terminal/warn.ts";
import { fakeIo } from "./fake.ts";

const HALF = { label: "target", done: 50e6, total: 100e6 };

Deno.test("progressLine shows share, bytes and rate", () => {
  assert.equal(
    progressLine(HALF, { elapsedMs: 500, columns: 80 }),
    "target [############------------] 50.0 MB of 100 MB, 100 MB/s",
  );
  assert.equal(
    progressLine({ ...HALF, done: 0, total: 0 }, { elapsedMs: 0, columns: 80 }),
    "target [------------------------] 0 B of 0 B",
  );
});

Deno.test("progressLine never reaches the last column", () => {
  for (let columns = 0; columns < 90; columns++) {
    const line = progressLine(HALF, { elapsedMs: 500, columns });
    assert.ok(line.length <= Math.max(0, columns - 1), `${columns}: ${line}`);
  }
  assert.equal(
    progressLine(HALF, { elapsedMs: 500, columns: 40 }),
    "target 50.0 MB of 100 MB, 100 MB/s",
  );
});

Deno.test("warn: a terminal obeys nothing of what a warning quotes", () => {
  const io = fakeIo({ terminal: true });
  warn("a\x1b[2Jb", { io, quiet: false });
  assert.equal(io.err(), "warning: a\uFFFD[2Jb\n");
});

Deno.test("statusLine: a terminal obeys nothing of a name", () => {
  const io = fakeIo({ terminal: true });
  statusLine(io.stderr, { shown: true }).load({ ...HALF, label: "a\x1b[2Jb" });
  assert.ok(io.err().startsWith("\r\x1b[Ka\uFFFD[2Jb ["));
});

Deno.test("statusLine draws at most every 80 ms, always the end, and clears once", () => {
  const io = fakeIo({ terminal: true });
  let time = 0;
  const status = statusLine(io.stderr, { shown: true, now: () => time });
  status.load({ ...HALF, done: 1e6 });
  time = 40;
  status.load({ ...HALF, done: 2e6 });
  time = 50;
  status.load({ ...HALF, done: 100e6 });
  status.clear();
  status.clear();
  assert.equal(
    io.err(),
    "\r\x1b[Ktarget [------------------------] 1.0 MB of 100 MB" +
      "\r\x1b[Ktarget [########################] 100 MB of 100 MB, 2.0 GB/s" +
      "\r\x1b[K",
  );
});

Deno.test("statusLine is silent where nobody sees it or it is not wanted", () => {
  const pipe = fakeIo();
  statusLine(pipe.stderr, { shown: true }).load(HALF);
  const quiet = fakeIo({ terminal: true });
  statusLine(quiet.stderr, { shown: false }).prefill(1, 2);
  assert.equal(pipe.err() + quiet.err(), "");
});

Deno.test("downloadLine counts rate and time left by what came since it began", () => {
  const progress = { label: "org/name", bytes: 3e9, total: 8e9, before: 2e9 };
  assert.equal(
    downloadLine(progress, { elapsedMs: 10_000, columns: 90 }),
    "org/name [#########---------------] 3.0 GB of 8.0 GB, 100 MB/s, 50 s left",
  );
  assert.equal(
    downloadLine({ ...progress, bytes: 2e9 }, { elapsedMs: 10, columns: 60 }),
    "org/name [######------------------] 2.0 GB of 8.0 GB, 0 B/s",
  );
  assert.equal(
    downloadLine({ ...progress, bytes: 8e9 }, { elapsedMs: 60_000, columns: 50 }),
    "org/name 8.0 GB of 8.0 GB, 100 MB/s",
  );
  for (let columns = 0; columns < 90; columns++) {
    const line = downloadLine(progress, { elapsedMs: 500, columns });
    assert.ok(line.length <= Math.max(0, columns - 1), `${columns}: ${line}`);
  }
});

Deno.test("duration", () => {
  const cases: [number, string][] = [
    [0, "0 s"],
    [99_000, "99 s"],
    [99_001, "2 min"],
    [5_940_000, "99 min"],
    [5_940_001, "1 h 40 min"],
    [7_200_000, "2 h 0 min"],
  ];
  for (const [ms, text] of cases) assert.equal(duration(ms), text);
});

Deno.test("benchLine shows what is done, the time left and what is measured", () => {
  const half = { done: 20, total: 40, text: "batch 2, 7 steps" };
  assert.equal(
    benchLine(half, { elapsedMs: 60_000, columns: 80 }),
    "bench [############------------] 20 of 40, 60 s left, batch 2, 7 steps",
  );
  assert.equal(
    benchLine({ done: 0, total: 0, text: "warming up batch 1" }, { elapsedMs: 5, columns: 80 }),
    "bench [------------------------] warming up batch 1",
  );
  for (let columns = 0; columns < 90; columns++) {
    const line = benchLine(half, { elapsedMs: 60_000, columns });
    assert.ok(line.length <= Math.max(0, columns - 1), `${columns}: ${line}`);
  }
});

Deno.test("promptLine: the rate of what was stored since, and the time that is left at it", () => {
  const half = { done: 16384, total: 32768, before: 8192 };
  assert.equal(
    promptLine(half, { elapsedMs: 2000, columns: 100 }),
    "prompt [############------------] 16384 of 32768 tokens, 4096 tokens/s, 4 s left",
  );
  assert.equal(
    promptLine({ ...half, done: 8192 }, { elapsedMs: 0, columns: 40 }),
    "prompt 8192 of 32768 tokens",
  );
});

Deno.test("kernels that are compiled are counted, at the start and for a prompt; a bar of bytes is none", () => {
  const io = fakeIo({ terminal: true });
  const status = statusLine(io.stderr, { shown: true, now: () => 0 });
  status.load({ label: "kernels", unit: "kernels", done: 12, total: 31 });
  const line = "compiling kernels for this GPU, once [#########---------------] 12 of 31";
  assert.ok(io.err().endsWith(`\r\x1b[K${line}`), io.err());
  status.prefill(0, 19, { done: 31, total: 40 });
  assert.match(io.err(), /compiling kernels for this GPU, once \[#+-+\] 31 of 40$/);
});

Deno.test("a prompt's rate begins when its kernels are there", () => {
  const io = fakeIo({ terminal: true });
  let clock = 0;
  const status = statusLine(io.stderr, { shown: true, now: () => clock });
  status.prefill(0, 4000);
  status.prefill(0, 4000, { done: 1, total: 2 });
  clock = 10_000;
  status.prefill(0, 4000, { done: 2, total: 2 });
  clock = 11_000;
  status.prefill(1000, 4000);
  assert.match(io.err(), /1000 of 4000 tokens, 1000 tokens\/s, 3 s left$/);
});

Deno.test("a prompt's rate begins anew with each prompt", () => {
  const io = fakeIo({ terminal: true });
  let clock = 0;
  const status = statusLine(io.stderr, { shown: true, now: () => clock });
  const at = (time: number, done: number) => {
    clock = time;
    status.prefill(done, 4000);
  };
  at(0, 0);
  at(1000, 1000);
  assert.match(io.err(), /1000 of 4000 tokens, 1000 tokens\/s, 3 s left$/);
  at(2000, 4000);
  status.clear();
  // The next one finds 2000 in the cache.
  at(60_000, 2000);
  at(61_000, 2500);
  assert.match(io.err(), /2500 of 4000 tokens, 500 tokens\/s, 3 s left$/);
});
