import { deepEqual, equal, match, notEqual, ok, throws } from "node:assert/strict";
import { columnsFor } from "../../src/measure/columns.ts";
import { digits } from "../../src/measure/formats.ts";
import { markdown } from "../../src/measure/markdown.ts";
import { html } from "../../src/measure/page/page.ts";
import { keyOfRow, rowKey } from "../../src/measure/row.ts";
import { csv, json, jsonLines, parseRows } from "../../src/measure/row_file.ts";
import { UsageError } from "../../src/errors.ts";
import { verdictLines } from "../../src/measure/verdict_text.ts";
import { sampleRows, SUBJECT } from "./fake.ts";

const SWEEP = { batch: [1, 8], numSteps: [1, 3, 7], policies: ["aggressive"], blocks: 3 };
const ROWS = await sampleRows(SWEEP);
const SIMULATED = await sampleRows({ ...SWEEP, subject: { ...SUBJECT, simulated: true } });
const FACTS = { command: "eyrie bench --x '<&>'", date: new Date(0), version: "0.1.0" };

Deno.test("markdown: what all rows share above, one line a row, verdicts and noise below", () => {
  const lines = markdown(ROWS).split("\n");
  match(
    lines[0] ?? "",
    /^model fake-1B, draft fake-eagle3, device Fake GPU, vulkan, workload phases/,
  );
  const table = lines.filter((line) => line.startsWith("|"));
  equal(table.length, 2 + ROWS.length);
  equal(new Set(table.map((line) => line.length)).size, 1, "aligned");
  match(
    table[0] ?? "",
    /\| batch \| setting +\| +tokens\/s \| prefill tokens\/s \| prefill time \| +over plain \[95 %\] /,
  );
  match(table[2] ?? "", /\| +1 \| plain +\| +[\d.]+ ± [\d.]+ \| +[\d.]+ \| +25\.0% \| +1\.00x \|/);
  match(
    lines.at(-2) ?? "",
    /^Noise, plain decoding against itself: batch 1 \d\.\d\dx \[.*batch 8 /,
  );
  deepEqual(lines.slice(-7, -2).filter((line) => line !== ""), verdictLines(ROWS).slice(0, 2));
  ok(!markdown(ROWS).includes("SIMULATED"));
});

Deno.test("noise is told with what its case differs in", () => {
  const text = markdown(ROWS.map((row, i) => ({ ...row, rounds_per_sync: i % 2 ? 4 : 1 })));
  match(text, /^Noise, plain decoding against itself: batch 1, rounds per sync \d \d\.\d\dx/m);
});

Deno.test("a column for what differs", () => {
  const [first, ...rest] = ROWS;
  const text = markdown([{ ...first!, temperature: 0.7 }, ...rest]);
  match(text, /\| temperature \| batch \|/);
  ok(!/^model.*temperature/.test(text));
});

Deno.test("tables of docs/bench.md have headings that are printed, in that order", async () => {
  const text = await Deno.readTextFile(new URL("../../docs/bench.md", import.meta.url));
  const titles = columnsFor(ROWS).columns.map(({ title }) => title);
  const heads = [...text.matchAll(/^(\|.*\|)\n\| :?-/gm)].map(([, head = ""]) =>
    head.split("|").slice(1, -1).map((cell) => cell.trim())
  );
  const sweeps = heads.filter((head) => head.includes("setting"));
  ok(sweeps.length > 0);
  for (const head of sweeps) deepEqual(head, titles.filter((title) => head.includes(title)));
  for (const title of titles) {
    const words = title.replace(/ (p50.*|\[.*|ms|%)$/, "");
    ok(text.includes(words), `no word on ${title}`);
  }
});

Deno.test("csv: flat columns, as many in each line", () => {
  const [header = "", ...lines] = csv(ROWS).trimEnd().split("\n");
  const names = header.split(",");
  for (
    const name of ["model", "tokens_per_second_mean", "speedup_low", "itl_ms_p99", "tier_share"]
  ) {
    ok(names.includes(name), name);
  }
  equal(names.includes("timeline"), false);
  equal(lines.length, ROWS.length);
  ok(lines[0]?.includes('"Fake GPU, vulkan"'));
  for (const line of lines) {
    equal(line.replace('"Fake GPU, vulkan"', "").split(",").length, names.length);
  }
});

Deno.test("every format says SIMULATED", () => {
  match(markdown(SIMULATED), /^SIMULATED acceptance: timing only\n\n[^|]*\| acceptance \|/);
  equal(csv(SIMULATED).match(/^SIMULATED,/gm)?.length, SIMULATED.length);
  equal(json(SIMULATED).match(/"SIMULATED"/g)?.length, SIMULATED.length);
  ok(SIMULATED.every((row) => jsonLines([row]).includes('"acceptance":"SIMULATED"')));
  match(html(SIMULATED, FACTS), /<div class="simulated">SIMULATED acceptance/);
  ok(!html(ROWS, FACTS).includes("SIMULATED"));
});

Deno.test("row lines come back as they were, under the key of their measurement", () => {
  const text = jsonLines(ROWS);
  const { rows, whole } = parseRows("f", text);
  deepEqual([...rows.values()], ROWS);
  equal(whole, text);
  const one = { workload: "phases", batch: 1, outputTokens: 128, temperature: 0, depth: 0 };
  equal(keyOfRow(ROWS[0]!), rowKey(SUBJECT, one, { label: "plain", seed: 1 }));
  const sized = { ...ROWS[0]!, prompt_tokens: 64, draft: null, acceptance: "SIMULATED" as const };
  const { draft: _, ...rest } = SUBJECT;
  equal(
    keyOfRow(sized),
    rowKey({ ...rest, draft: undefined, simulated: true }, { ...one, promptTokens: 64 }, {
      label: "plain",
      seed: 1,
    }),
  );
});

Deno.test("other probabilities of simulated acceptance and another rope base are other measurements", async () => {
  const one = { workload: "phases", batch: 1, outputTokens: 128, temperature: 0, depth: 0 };
  const place = { label: "plain", seed: 1 };
  const simulated = { ...SUBJECT, simulated: true, simulateAcceptance: [0.8, 0.7] };
  const based = { ...SUBJECT, draftRopeTheta: 10000 };
  for (const subject of [simulated, based]) {
    const [row] = await sampleRows({ batch: [1], numSteps: [0], blocks: 2, subject });
    const [read] = parseRows("f", jsonLines([row!])).rows.keys();
    equal(read, rowKey(subject, one, place));
    equal(keyOfRow(row!), read);
    for (const other of [SUBJECT, { ...simulated, simulateAcceptance: [0.8] }]) {
      notEqual(read, rowKey(other, one, place));
    }
  }
});

Deno.test("a row file that ends in mid-line loses that line only; the last of two rows counts", () => {
  const [first, second] = ROWS;
  const newer = { ...first!, blocks: 9 };
  const text = jsonLines([first!, second!, newer]);
  const { rows, whole } = parseRows("f", `${text}{"format": "eyr`);
  equal(whole, text);
  deepEqual([...rows.values()].map(({ blocks }) => blocks), [9, 3]);
});

Deno.test("a line that is no row is a mistake with its number", () => {
  const cases: [string, RegExp][] = [
    ["{}\n", /^Cannot resume from "f": line 1: no row of eyrie bench \(format "eyrie-bench-2"\)$/],
    [`${jsonLines([ROWS[0]!])}\nx\n`, /^Cannot resume from "f": line 3: not JSON: /],
  ];
  for (const [text, message] of cases) {
    throws(
      () => parseRows("f", text),
      (error) => error instanceof UsageError && message.test(error.message),
    );
  }
});

Deno.test("the page is one file: no script, nothing to fetch, all text escaped", () => {
  const page = html(ROWS.map((row) => ({ ...row, model: "<b>&amp;" })), FACTS);
  ok(page.startsWith("<!doctype html>\n<html lang="));
  ok(!/<script|<link|<img|@import|url\(|href=|src=/.test(page));
  ok(!page.includes("<b>&amp;"));
  ok(page.includes("&lt;b&gt;&amp;amp;"));
  ok(page.includes("eyrie bench --x '&lt;&amp;&gt;'"));
  match(page, /prefers-color-scheme: dark/);
  match(page, /1970-01-01 00:00 UTC/);
});

Deno.test("the page has a figure for each chart and a line for each row", () => {
  const page = html(ROWS, FACTS);
  const captions = [...page.matchAll(/<figcaption>(.*?)<\/figcaption>/g)].map(([, text]) => text);
  deepEqual(captions, [
    "Tokens/s, 95 % intervals",
    "Speed over plain, 95 % intervals; band: A/A noise",
    "policy aggressive, batch 1",
    "policy aggressive, batch 8",
    ...["batch 1", "batch 8"],
    ...["batch 1", "batch 8"],
  ]);
  equal(page.match(/<tr/g)?.length, 1 + ROWS.length);
  equal(page.match(/<tr class="best"/g)?.length, 2);
});

Deno.test("the page stands without drafts, with one block, with several groups, without rows", async () => {
  const plain = await sampleRows({ batch: [1], numSteps: [], blocks: 1 });
  const page = html(plain, FACTS);
  ok(!/NaN|undefined|Infinity/.test(page.replace(/<style>.*?<\/style>/gs, "")), "no holes");
  ok(
    !/Speed over plain|Accept length over time|Acceptance by position/.test(page),
    "nothing empty",
  );
  const groups = html([...ROWS, ...ROWS.map((row) => ({ ...row, depth: 1024 }))], FACTS);
  match(groups, /<h2>Speed: depth 0<\/h2>/);
  match(groups, /<h2>Speed: depth 1024<\/h2>/);
  match(html([], FACTS), /eyrie bench/);
});

Deno.test("digits: three that matter", () => {
  const cases: [number, string][] = [
    [0, "0.00"],
    [0.0123, "0.012"],
    [0.123, "0.123"],
    [1.234, "1.23"],
    [12.34, "12.3"],
    [123.4, "123"],
    [12345, "12345"],
    [0.9996, "1.00"],
    [9.999, "10.0"],
    [99.96, "100"],
  ];
  for (const [value, text] of cases) equal(digits(value), text);
});
