// Device time of the kernels of prefill chunks that end at given contexts, by label: it shows what grows with context.
//
//   deno run -A lab/deep.ts --target CONFIG [--contexts 512,8192,32768] [--rows 256] [--kv f32] [--times 5]
//     [--labels 8]
//
// CONFIG is a config.json of a model that is filled with random weights; default: the embedded model. The keys and
// values before the chunk are random, so that no time is spent on computing them. Figures are median microseconds a
// chunk: once with each dispatch in a pass of its own (skipped with --labels 0), and once with all of them in one pass.
// The last line is the time of a whole prompt of the longest context: the sum of its chunks, where chunks between two
// measured contexts are interpolated linearly. It needs a context of one chunk. A context of 512 is the prompt to
// compare with.
import process from "node:process";
import { parseArgs } from "node:util";
import { markdownTable } from "markdown-table";
import { withoutNumbers } from "../src/measure/profile/profile.ts";
import { median } from "../src/measure/statistics.ts";
import { fillCells } from "../src/engine/check/growth/random_cells.ts";
import { openSequence } from "../src/engine/device/single_sequence.ts";
import { maxCells } from "../src/engine/device/sequence.ts";
import { openEngine } from "../src/engine/open.ts";
import { apart, openProfiler } from "../src/gpu/profile.ts";
import { workAt } from "../src/gpu/kernel.ts";
import { GREEDY } from "../src/speculate/sampling.ts";

const { values: flags } = parseArgs({
  options: {
    target: { type: "string" },
    contexts: { type: "string", default: "512,8192,32768" },
    rows: { type: "string", default: "256" },
    kv: { type: "string", default: "f32" },
    times: { type: "string", default: "5" },
    labels: { type: "string", default: "8" },
  },
});
const contexts = flags.contexts.split(",").map(Number);
const [rows, times, labels] = [flags.rows, flags.times, flags.labels].map(Number) as [
  number,
  number,
  number,
];
const longest = Math.max(...contexts);
const kvDtype = ["f32", "f16", "bf16"].find((name) => name === flags.kv) as "f32" | undefined;
using engine = await openEngine({
  model: flags.target === undefined ? { draft: "none" } : { random: { target: flags.target } },
  device: { autotune: "off" },
  limits: { contextLength: longest + 64, ...kvDtype ? { kvDtype } : {} },
});
const { runner } = engine;
await fillCells(runner);
using profiler = await openProfiler(runner.gpu);
using sequence = openSequence(runner);
runner.setSampling(sequence, GREEDY);
runner.reserve(sequence, longest + 1);

/** Measures the chunk that ends at `context`: median times by label, and of the whole chunk in one pass. */
async function chunk(context: number) {
  const count = Math.min(rows, context);
  const ids = Array.from({ length: context }, (_, i) => 3 + (31 * i) % 1000);
  sequence.ids.splice(0, Infinity, ...ids);
  sequence.stored = sequence.draftStored = context - count;
  await runner.prefill([{ sequence, to: context }]);
  const { body } = await runner.programs.prompt({
    rows: count,
    cells: maxCells([{ pages: sequence.pages.slice(0, Math.ceil(context / 16)) }]),
  });
  const began = performance.now();
  while (performance.now() - began < (runner.gpu.info.software ? 0 : 200)) {
    await profiler.time([body]);
  }
  const apartMs: number[][] = [];
  const whole: number[] = [];
  for (let time = 0; time < times; time++) {
    const spans = labels > 0 ? await profiler.time(apart(body)) : [];
    apartMs.push(spans.map(({ begin, end }) => end - begin));
    const [span] = await profiler.time([body]);
    if (span) whole.push(span.end - span.begin);
  }
  const found = new Map<string, { us: number; calls: number; flops: number }>();
  for (const [i, { label, kernel, work }] of body.steps.entries()) {
    const name = `${withoutNumbers(label)} ${kernel}`;
    const us = 1000 * median(apartMs.map((ms) => ms[i] ?? 0));
    const { flops } = work
      ? workAt(work, { cells: context, seen: context - count / 2 })
      : { flops: 0 };
    const one = found.getOrInsertComputed(name, () => ({ us: 0, calls: 0, flops: 0 }));
    one.us += us;
    one.calls++;
    one.flops += flops;
  }
  return { found, whole: median(whole), count };
}

/**
 * Tokens of the short prompt that the longest one is compared with. If a chunk has more rows and no context of 512 was
 * measured, the short prompt is one chunk.
 */
const SHORT = 512;
let shortMs: number | undefined;
const say = (text: string) => process.stdout.write(`${text}\n\n`);
say(`${engine.info.device.adapter}, chunks of ${rows} rows, keys and values in ${flags.kv}`);
const measured: (readonly [context: number, ms: number])[] = [];
for (const context of contexts.toSorted((a, b) => a - b)) {
  const { found, whole, count } = await chunk(context);
  if (count === rows) measured.push([context, whole]);
  if (context === SHORT && rows > SHORT) shortMs = whole;
  say(
    `## ${context} tokens: ${whole.toFixed(3)} ms in one pass, ${
      (count / whole * 1000).toFixed(0)
    } tokens/s`,
  );
  const lines = [...found].toSorted((a, b) => b[1].us - a[1].us).slice(0, labels)
    .map(([name, { us, calls, flops }]) => [
      name.slice(0, 70),
      String(calls),
      us.toFixed(0),
      (flops / us / 1e6).toFixed(1),
    ]);
  if (labels > 0) {
    say(markdownTable([["label", "calls", "us in all", "TFLOP/s"], ...lines], {
      align: ["l", "r", "r", "r"],
    }));
  }
}
say(wholePrompt());

/** Milliseconds of the chunk that ends at `context`, interpolated between measured contexts. */
function between(context: number): number {
  const next = Math.max(1, measured.findIndex(([each]) => each >= context));
  const [[from, before], [to, after]] = [measured[next - 1], measured[next]] as [
    readonly [number, number],
    readonly [number, number],
  ];
  return before + (after - before) * (context - from) / (to - from);
}

/** Milliseconds of a prompt of `tokens` tokens: the sum of its chunks. */
function promptMs(tokens: number): number {
  const chunks = Array.from({ length: Math.floor(tokens / rows) }, (_, i) => (i + 1) * rows);
  return chunks.map(between).reduce((a, b) => a + b, 0);
}

function wholePrompt(): string {
  if (measured[0]?.[0] !== rows || measured.length < 2) return "";
  const short = shortMs === undefined ? Math.max(rows, SHORT) : SHORT;
  const last = Math.max(rows, SHORT);
  const ms = promptMs(longest);
  const lastMs = ms - promptMs(longest - last);
  const rate = (tokens: number, ms: number) => 1000 * tokens / ms;
  const shortRate = rate(short, shortMs ?? promptMs(short));
  const share = (rate: number) => (rate / shortRate).toFixed(3);
  return `A prompt of ${longest} tokens: ${ms.toFixed(0)} ms, ${rate(longest, ms).toFixed(0)} ` +
    `tokens/s, ${share(rate(longest, ms))} of a prompt of ${short} (${
      shortRate.toFixed(0)
    } tokens/s); its last ${last} tokens ${share(rate(last, lastMs))}`;
}
