import assert from "node:assert/strict";
import { parseHTML } from "npm:linkedom@0.18.12";
import { growthTables } from "../../src/measure/growth/columns.ts";
import { growthHtml } from "../../src/measure/growth/page.ts";
import { basePoint, growthAxes, growthSeries } from "../../src/measure/growth/points.ts";
import { type GrowthRow, prefillRow, roundRow } from "../../src/measure/growth/row.ts";
import { rowsCsv } from "../../src/measure/csv.ts";
import { growthMarkdown } from "../../src/measure/growth/text.ts";
import { SUBJECT } from "./fake.ts";

Deno.test("growth: one axis at a time from the usual point, or from the first value", () => {
  const axes = { context: [0, 512, 2048], batch: [1, 8], rows: [4] };
  assert.deepEqual(basePoint(axes), { context: 512, batch: 1, rows: 4 });
  assert.deepEqual(growthSeries(axes), [
    {
      axis: "context",
      points: [0, 512, 2048].map((context) => ({ context, batch: 1, rows: 4 })),
    },
    { axis: "batch", points: [1, 8].map((batch) => ({ context: 512, batch, rows: 4 })) },
  ]);
  const elsewhere = { context: [64, 128], batch: [8], rows: [2] };
  assert.deepEqual(basePoint(elsewhere), { context: 64, batch: 8, rows: 2 });
  const single = { context: [64], batch: [8], rows: [2] };
  assert.deepEqual(growthSeries(single), [
    { axis: "context", points: [{ context: 64, batch: 8, rows: 2 }] },
  ]);
});

Deno.test("growth: what nobody asked for suits the adapter and the model", () => {
  const hardware = growthAxes({}, { software: false, longest: 100_000 });
  assert.deepEqual([hardware.context.at(-1), hardware.batch.at(-1)], [32768, 128]);
  assert.deepEqual(growthAxes({}, { software: false, longest: 4000 }).context, [
    ...[0, 128, 512, 2048],
    4000,
  ]);
  const software = growthAxes({ batch: [8, 1, 8] }, { software: true, longest: 900 });
  assert.deepEqual(software, { context: [0, 128, 512, 900], batch: [1, 8], rows: [1, 2, 4, 8] });
  // A requested value stays here. It is left out later, with a reason.
  assert.deepEqual(growthAxes({ context: [9000] }, { software: true, longest: 900 }).context, [
    9000,
  ]);
});

const MEMORY = { weights: 2e9, kv: 1e9, scratch: 5e8, total: 3.5e9 };
const PLACE = { subject: SUBJECT, memory: MEMORY, bandwidth: 100 };

function rowAt(context: number, verifyMs: number[], more: Partial<GrowthRow> = {}): GrowthRow {
  const rounds = verifyMs.map((ms) => ({ ms: ms + 2, draftMs: 1, verifyMs: ms, extendMs: 0.5 }));
  const point = { context, batch: 2, rows: 3 };
  const work = { bytes: 4e8, flops: 6e12 };
  return { ...roundRow({ rounds, work }, { ...PLACE, axis: "context", point }), ...more };
}

Deno.test("growth: medians, what is not the device's, and the floor of the bytes", () => {
  const row = rowAt(512, [8, 100, 6]);
  assert.deepEqual(
    [row.ms, row.device_ms, row.draft_ms, row.verify_ms, row.extend_ms, row.host_ms],
    [10, 9.5, 1, 8, 0.5, 0.5],
  );
  // 400 MB at 100 GB/s are 4 ms.
  assert.deepEqual([row.floor_ms, row.over_floor], [4, 9.5 / 4]);
  assert.ok(Math.abs(row.tflops - 6 / 9.5e-3) < 1e-9);
  // Two sequences of three rows in 10 ms.
  assert.equal(row.rows_per_second, 600);
  assert.deepEqual(row.memory, MEMORY);

  const still = { ms: 5, draftMs: 0, verifyMs: 0, extendMs: 0 };
  const place = { ...PLACE, bandwidth: undefined, axis: "rows" } as const;
  const point = { context: 1, batch: 1, rows: 1 };
  const blind = roundRow({ rounds: [still], work: { bytes: 1, flops: 1 } }, { ...place, point });
  assert.deepEqual([blind.ms, blind.device_ms, blind.host_ms], [5, null, null]);
  assert.deepEqual([blind.floor_ms, blind.over_floor], [null, null]);
});

const PREFILL = prefillRow(
  { count: 512, ms: [40, 50, 45], work: { bytes: 1e9, flops: 9e12 } },
  { ...PLACE, axis: "context", point: { context: 2048, batch: 1, rows: 1 } },
);

Deno.test("growth: a prefill's rate is of its tokens, its floor of all the time", () => {
  assert.deepEqual([PREFILL.kind, PREFILL.rows, PREFILL.context], ["prefill", 512, 2048]);
  assert.deepEqual([PREFILL.ms, PREFILL.rows_per_second], [45, 512 / 0.045]);
  assert.deepEqual([PREFILL.floor_ms, PREFILL.over_floor, PREFILL.tflops], [10, 4.5, 200]);
});

const ROWS = [rowAt(0, [4]), rowAt(512, [8]), PREFILL];
const FACTS = {
  bandwidth: { gbps: 100, given: true },
  skipped: ["fake-1B, context 32768: it takes 80 GB"],
};

Deno.test("growth: a table an axis and kind; columns that nothing fills are left out", () => {
  const [rounds, prefills] = growthTables(ROWS);
  assert.equal(rounds?.title, "fake-1B: a round by context (batch 2, rows 3)");
  assert.ok(rounds?.columns.some(({ title }) => title === "draft ms"));
  assert.equal(prefills?.title, "fake-1B: prefill of the last tokens of a context");
  const plain = growthTables([rowAt(0, [4], { draft: null }), rowAt(512, [8], { draft: null })]);
  assert.ok(!plain[0]?.columns.some(({ title }) => title === "draft ms"));
  const text = growthMarkdown(ROWS, FACTS);
  assert.match(text, /^model fake-1B, draft fake-eagle3, device Fake GPU, vulkan\n/);
  assert.match(text, /bandwidth 100 GB\/s \(given\)/);
  assert.match(text, /\| +512 \| +10.0 \| +9.50 \|.*\| +2.38x \| +1.73x \| +600 \| 3.5 GB \|/);
  assert.match(text, /left out: fake-1B, context 32768: it takes 80 GB\n$/);
  // If no floor is known, the table has no column for it.
  const unknown = growthTables([rowAt(0, [4], { floor_ms: null, over_floor: null })]);
  assert.ok(!unknown[0]?.columns.some(({ title }) => title.includes("floor")));
  const blind = growthMarkdown([], { bandwidth: { gbps: null, given: false }, skipped: [] });
  assert.match(blind, /bandwidth not known: set EYRIE_BANDWIDTH/);
});

Deno.test("growth: CSV has a line a row and flat names", () => {
  const [head = "", ...lines] = rowsCsv(ROWS).trim().split("\n");
  assert.equal(lines.length, ROWS.length);
  const names = head.split(",");
  assert.ok(
    ["axis", "context", "over_floor", "memory_total"].every((name) => names.includes(name)),
  );
  // The device's name has a comma, within quotes.
  assert.equal(lines[1]?.split(",")[names.indexOf("over_floor") + 1], String(9.5 / 4));
});

Deno.test("growth: two WebGPUs are two series of tables and lines", () => {
  const rows = [rowAt(0, [4]), rowAt(0, [5], { webgpu: "dawn" })];
  assert.deepEqual(growthTables(rows).map(({ title }) => title.split(":")[0]), [
    "fake-1B, builtin",
    "fake-1B, dawn",
  ]);
});

interface Node {
  readonly textContent: string;
  getAttribute(name: string): string | null;
}

Deno.test("growth: the page has a named chart a measure and a table a series", () => {
  const rows = [
    ...ROWS,
    rowAt(0, [2], { model: "fake-8B" }),
    rowAt(512, [4], { model: "fake-8B" }),
  ];
  const text = growthHtml(rows, {
    ...FACTS,
    command: "eyrie bench --table growth",
    date: new Date(0),
    version: "0",
  });
  const { document } = parseHTML(text) as unknown as {
    document: { querySelectorAll(selector: string): Iterable<Node> };
  };
  const all = (selector: string) => [...document.querySelectorAll(selector)];
  const names = all("figure svg").map((svg) => svg.getAttribute("aria-label"));
  assert.ok(names.includes("A step on the device; thin: its floor by context"), String(names));
  assert.ok(names.includes("Prefill of the last tokens of a context by context"));
  assert.equal(all("figure").length, 6);
  assert.equal(all("table").length, 3);
  assert.deepEqual(all(".legend span").map((each) => each.textContent.slice(-7)), [
    "fake-1B",
    "fake-8B",
  ]);
  assert.ok(text.includes("Left out: fake-1B, context 32768"));
  assert.ok(!text.includes("<script"));
});
