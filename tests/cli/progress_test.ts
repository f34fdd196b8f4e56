import assert from "node:assert/strict";
import { progressLine, size, statusLine } from "../../src/cli/progress.ts";
import { fakeIo } from "./fake.ts";

const HALF = { label: "target", bytes: 50e6, total: 100e6 };

Deno.test("size", () => {
  const cases: [number, string][] = [
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1.0 kB"],
    [99_949, "99.9 kB"],
    [99_950, "100 kB"],
    [999_499, "999 kB"],
    [999_500, "1.0 MB"],
    [2.5e9, "2.5 GB"],
    [4e15, "4000 TB"],
  ];
  for (const [bytes, text] of cases) assert.equal(size(bytes), text);
});

Deno.test("progressLine shows share, bytes and rate", () => {
  assert.equal(
    progressLine(HALF, { elapsedMs: 500, columns: 80 }),
    "target [############------------] 50.0 MB of 100 MB, 100 MB/s",
  );
  assert.equal(
    progressLine({ ...HALF, bytes: 0, total: 0 }, { elapsedMs: 0, columns: 80 }),
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

Deno.test("statusLine draws at most every 80 ms, always the end, and clears once", () => {
  const io = fakeIo({ terminal: true });
  let time = 0;
  const status = statusLine(io.stderr, { shown: true, now: () => time });
  status.load({ ...HALF, bytes: 1e6 });
  time = 40;
  status.load({ ...HALF, bytes: 2e6 });
  time = 50;
  status.load({ ...HALF, bytes: 100e6 });
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
