import { deepEqual, equal, match, ok } from "node:assert/strict";
import { summary } from "../../src/measure/summary.ts";
import { sampleRows, SUBJECT } from "./fake.ts";
import { invented, noise } from "./invented.ts";

const SWEEP = { batch: [1, 8], numSteps: [1, 3, 7], policies: ["aggressive"], blocks: 5 };
const ROWS = await sampleRows(SWEEP);

/** The words of the table's two header lines. */
function heads(text: string): [upper: string[], lower: string[]] {
  const lines = text.split("\n");
  const lower = lines.findIndex((line) => line.includes("setting"));
  const words = (at: number) => (lines[at] ?? "").trim().split(/ {2,}/);
  return [words(lower - 1), words(lower)];
}

const WIDTHS: readonly [columns: number, upper: string, lower: string][] = [
  [50, "over plain", "batch|setting|[95 %]"],
  [70, "tokens/s|over plain", "batch|setting|[95 %]|[95 %]"],
  [80, "tokens/s|over plain|accept", "batch|setting|[95 %]|[95 %]|length"],
  [
    100,
    "tokens/s|over plain|accept|TPOT p50",
    "batch|setting|[95 %]|[95 %]|length|ms|accepted",
  ],
  [
    200,
    "tokens/s|over plain|accept|TPOT p50|TTFT p50|prefill|prefill|over best fixed|time by",
    "batch|setting|[95 %]|[95 %]|length|ms|accepted|ms|tokens/s|time|[95 %]|tier",
  ],
];

for (const [columns, upper, lower] of WIDTHS) {
  Deno.test(`${columns} columns: no line is longer, what matters least is dropped first`, () => {
    const text = summary(ROWS, { columns });
    const longest = Math.max(...text.split("\n").map((line) => line.length));
    ok(longest <= columns, `${longest} characters in ${columns} columns`);
    deepEqual(heads(text), [upper.split("|"), lower.split("|")]);
    equal(text.match(/^ +[18] {2}\S/gm)?.length, ROWS.length, "a line a row");
    match(text, /^batch 1: fastest is /m);
    match(text, /^batch 8: /m);
    match(text, /A\/A: plain decoding measured again/);
    match(
      text.replaceAll("\n  ", " "),
      /^prefill, plain decoding: batch 1 [\d.]+ tokens\/s in 25\.0% of the time; batch 8 \d+ tokens\/s in 25\.0% of the time$/m,
    );
  });
}

Deno.test("what is the same in all rows stands above, what differs is a column that stays", () => {
  const text = summary([...ROWS, ...ROWS.map((row) => ({ ...row, depth: 64 }))], { columns: 60 });
  match(
    text,
    /^model {5}fake-1B\ndraft {5}fake-eagle3\ndevice {4}Fake GPU, vulkan\nworkload {2}phases\n/,
  );
  deepEqual(heads(text)[1].slice(0, 3), ["depth", "batch", "setting"]);
  match(text, /^batch 8, depth 64: /m);
});

Deno.test("two blocks have no interval: said once below and in each verdict", async () => {
  const text = summary(await sampleRows({ ...SWEEP, blocks: 2 }), { columns: 80 });
  ok(!/\[[^9]/.test(text), "no interval anywhere");
  equal(text.match(/2 blocks are too few for an interval; --repeat 5/g)?.length, 3);
});

Deno.test("an interval of tokens/s ends at 0", () => {
  const wild = invented(3, [0.2, 4, 0.3]);
  match(
    summary([invented(0, [1, 1, 1]), noise([1, 1, 1]), wild], { columns: 80 }),
    /150 \[0\.00, /,
  );
});

Deno.test("simulated rows say so; columns without values are left out; long names keep their end", async () => {
  const simulated = await sampleRows({ ...SWEEP, subject: { ...SUBJECT, simulated: true } });
  match(summary(simulated, { columns: 80 }), /^SIMULATED acceptance: timing only/);
  const plain = await sampleRows({ batch: [1], numSteps: [], blocks: 3 });
  ok(!heads(summary(plain, { columns: 200 }))[1].some((word) => /accepted|tier/.test(word)));
  const long = ROWS.map((row) => ({
    ...row,
    setting: `policy ema:config=/home/someone/models/${row.setting}`,
  }));
  match(summary(long, { columns: 80 }), /policy ema:….*7 steps /);
});
