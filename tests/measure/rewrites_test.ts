import assert from "node:assert/strict";
import { rowsCsv } from "../../src/measure/csv.ts";
import type { RewriteShape } from "../../src/engine/check/rewrites.ts";
import { type RewriteEvent, rewrites } from "../../src/measure/rewrites/session.ts";
import { type RewriteRow, rewriteRow } from "../../src/measure/rewrites/row.ts";
import { rewritesMarkdown, rewritesTerminal } from "../../src/measure/rewrites/text.ts";
import { SUBJECT } from "./fake.ts";

const ONE: RewriteShape = { kind: "round", point: { context: 512, batch: 1, rows: 1 } };
const MANY: RewriteShape = { kind: "round", point: { context: 512, batch: 2, rows: 4 } };
const PROMPT: RewriteShape = { kind: "prompt", rows: 256 };

function row(
  shape: RewriteShape,
  rewrite: string,
  [withMs, withoutMs]: readonly [readonly number[], readonly number[]],
): RewriteRow {
  const samples = { rewrite, changesBits: rewrite !== "add_in_norm", clock: "device" } as const;
  return rewriteRow({ ...samples, withMs, withoutMs }, { subject: SUBJECT, shape });
}

const ROWS = [
  row(ONE, "add_in_norm", [[1, 2, 3, 1, 1, 1], [2, 4, 6, 2, 2, 2]]),
  row(ONE, "all", [[1, 2, 90], [4, 6, 90]]),
  row(MANY, "all", [[2], [3]]),
  row(PROMPT, "split_k", [[100, 100], [99, 101]]),
  row(PROMPT, "all", [[100], [250]]),
];

Deno.test("rewrites: medians of the times, and of the pairs' ratios", () => {
  const [first, second] = ROWS;
  assert.deepEqual(
    [first?.with_ms, first?.without_ms, first?.ratio, first?.ratio_low, first?.ratio_high],
    [1, 2, 2, 2, 2],
  );
  // The pairs are 4, 3 and 1 times as long; the medians are 2 and 6.
  assert.deepEqual([second?.with_ms, second?.without_ms, second?.ratio_low], [2, 6, null]);
  assert.ok(Math.abs((second?.ratio ?? 0) - 3) < 1e-12);
  assert.deepEqual([ROWS[3]?.context, ROWS[3]?.batch, ROWS[3]?.rows], [0, 1, 256]);
});

Deno.test("rewrites: the table has a line a rewrite, all of them last, and columns a shape", () => {
  const text = rewritesMarkdown({
    rows: ROWS,
    skipped: ["m, prompt of 256, without split_k: no kernel"],
    stopped: false,
  });
  const lines = text.trim().split("\n");
  const at = lines.findIndex((line) => line.startsWith("## "));
  assert.deepEqual(lines.slice(at).map((line) => line.replaceAll(/ +/g, " ")), [
    `## ${SUBJECT.model}, draft ${SUBJECT.draft ?? "none"}, ${SUBJECT.device}, device time`,
    "",
    "| without | bits | 1 row: with ms | 1 row: without ms | 1 row: ratio " +
    "| 2 x 4 rows: with ms | 2 x 4 rows: without ms | 2 x 4 rows: ratio " +
    "| prompt of 256: with ms | prompt of 256: without ms | prompt of 256: ratio |",
    "| :---------- | :----- | -------------: | ----------------: | -----------: " +
    "| ------------------: | ---------------------: | ----------------: " +
    "| ---------------------: | ------------------------: | -------------------: |",
    "| add_in_norm | same | 1.00 | 2.00 | 2.00x | - | - | - | - | - | - |",
    "| split_k | others | - | - | - | - | - | - | 100 | 100 | 1.00x |",
    "| all | others | 2.00 | 6.00 | 3.00x | 2.00 | 3.00 | 1.50x | 100 | 250 | 2.50x |",
    "",
    "left out: m, prompt of 256, without split_k: no kernel",
  ]);
  const [head, first] = rowsCsv(ROWS).split("\n");
  assert.equal(
    head,
    "model,draft,device,webgpu,kind,context,batch,rows,rewrite,changes_bits,clock,runs," +
      "with_ms,without_ms,ratio,ratio_low,ratio_high",
  );
  assert.match(first ?? "", /,round,512,1,1,add_in_norm,false,device,6,1,2,2,2,2$/);
});

Deno.test("rewrites: contexts are named where there are several, a host's clock is", () => {
  const far = { kind: "round", point: { context: 64, batch: 1, rows: 1 } } as const;
  const rows = [row(ONE, "all", [[1], [2]]), row(far, "all", [[1], [2]])].map((
    each,
  ): RewriteRow => ({ ...each, clock: "host" }));
  const text = rewritesMarkdown({ rows, skipped: [], stopped: false });
  assert.match(text, /\| 1 row at 512: ratio \|.*\| 1 row at 64: ratio \|/);
  assert.match(text, /, the host's clock\n/);
});

Deno.test("rewrites: where it was stopped, a field that was not reached is empty", () => {
  const text = rewritesMarkdown({ rows: ROWS.slice(0, 3), skipped: [], stopped: true });
  assert.match(
    text,
    /^\| add_in_norm \| same +\| +1\.00 \| +2\.00 \| +2\.00x \S*.*\| +\| +\| +\|$/m,
  );
  assert.match(text, /\n\nstopped: an empty field was not reached, /);
});

Deno.test("rewrites: on a terminal no line is longer than it is wide, and every shape is there", () => {
  const text = rewritesTerminal({ rows: ROWS, skipped: [], stopped: false }, { columns: 60 });
  assert.ok(text.split("\n").every((line) => line.length <= 60), text);
  for (const shape of ["1 row", "2 x 4 rows", "prompt of 256"]) assert.ok(text.includes(shape));
  assert.match(text, /^add_in_norm +1\.00 +2\.00x/m);
  assert.match(text, /^split_k .*- +- +100 +1\.00x$|^split_k +100 +1\.00x$/m);
  assert.match(text, /--format md: all columns/);
});

async function events(
  { stopAfter = Infinity, repeat = 1, stopWithin = false } = {},
): Promise<RewriteEvent[]> {
  const stop = new AbortController();
  const found: RewriteEvent[] = [];
  const measuring = rewrites({
    models: [{ model: { draft: "none" } }],
    context: [8, 5000],
    batch: [2],
    rows: [3, 3],
    chunk: 8,
    repeat,
    signal: stop.signal,
  });
  for await (const event of measuring) {
    found.push(event);
    const begins = event.kind === "point" && event.text.includes("without");
    if (stopWithin && begins) abortOnceRead(stop);
    if (found.filter(({ kind }) => kind === "row").length >= stopAfter) stop.abort();
  }
  return found;
}

/** Aborts in the turn of the event loop after the first look at the signal, which is before the first pair. */
function abortOnceRead(stop: AbortController): void {
  let aborted = false;
  let read = false;
  Object.defineProperty(stop.signal, "aborted", {
    get() {
      if (!read) setTimeout(() => void (aborted = true, stop.abort()), 0);
      read = true;
      return aborted;
    },
  });
}

Deno.test("rewrites: rounds, each once, and a chunk of a prompt; what has no room is left out", async () => {
  const found = await events();
  const rows = found.flatMap((event) => event.kind === "row" ? [event.row] : []);
  const shapes = rows.map(({ kind, context, batch, rows }) => [kind, context, batch, rows].join());
  assert.deepEqual([...new Set(shapes)], ["round,8,2,3", "prompt,0,1,8"]);
  assert.ok(rows.every(({ with_ms, without_ms, ratio }) => with_ms * without_ms * ratio > 0));
  const all = rows.filter(({ rewrite }) => rewrite === "all");
  assert.deepEqual(all.map(({ changes_bits }) => changes_bits), [true, true]);
  const skipped = found.flatMap((event) => event.kind === "skipped" ? [event] : []);
  assert.deepEqual(skipped.map(({ what }) => what), [
    "fledgling, context 5000, batch 2, rows 3",
  ]);
  assert.match(skipped[0]?.why ?? "", /^the model has 1024 positions/);
  const points = found.flatMap((event) => event.kind === "point" ? [event] : []);
  assert.ok(points.some(({ text }) => text.endsWith("prompt of 8, without all")));
  assert.ok(points.every(({ done }, i) => i === 0 || done >= (points[i - 1]?.done ?? 0)));
  assert.ok(points.every(({ done, total }) => done < total));
});

Deno.test("rewrites: an abort ends it after the rewrite in flight", async () => {
  const kinds = (await events({ stopAfter: 1 })).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["skipped", "point", "point", "row"]);
});

Deno.test("rewrites: an abort that comes from a timer or a signal ends the pairs in flight", async () => {
  const found = await events({ repeat: 300, stopWithin: true });
  const runs = found.flatMap((event) => event.kind === "row" ? [event.row.runs] : []);
  assert.ok(runs.length <= 1 && runs.every((pairs) => pairs < 300), `${runs} pairs`);
});
