// Device time of rounds that verify a packed part of the drafts, beside rounds that verify all drafts or none.
//
//   deno run -A lab/verify.ts [--target CONFIG --draft CONFIG] [--batches 1,8,32] [--steps 7]
//     [--context 512] [--shares 0,0.25,0.5,0.75] [--times 15] [--autotune on] [--tree 5:8:32]
//   With --shares "" no programs for packed rows are compiled, so it opens sooner. With --tree, rounds verify trees
//   instead of chains, and none are packed.
//
// CONFIG is a config.json of a model that is filled with random weights; default: the embedded model. Figures are
// milliseconds by timestamps: medians of rounds in which all settings take turns. In "chosen" rounds the device
// chooses the drafts to verify; "plain" is decoding without drafts.
import process from "node:process";
import { parseArgs } from "node:util";
import { median } from "../src/measure/statistics.ts";
import type { RoundRequest } from "../src/engine/device/runner.ts";
import {
  type OpenSequence,
  openSequence,
  prefillPrompt,
} from "../src/engine/device/single_sequence.ts";
import { packedRows } from "../src/speculate/costs/cost_buckets.ts";
import type { RoundResult } from "../src/engine/device/round_result.ts";
import { rewind } from "../src/engine/device/sequence.ts";
import { openEngine } from "../src/engine/open.ts";
import { fixed } from "../src/speculate/policies/static.ts";
import { chain } from "../src/speculate/round_shape.ts";
import { treeNamed } from "../src/speculate/tree_shape.ts";
import { GREEDY } from "../src/speculate/sampling.ts";

const { values: flags } = parseArgs({
  options: {
    target: { type: "string" },
    draft: { type: "string" },
    batches: { type: "string", default: "1,8,32" },
    steps: { type: "string", default: "7" },
    context: { type: "string", default: "512" },
    shares: { type: "string", default: "0,0.25,0.5,0.75" },
    times: { type: "string", default: "15" },
    autotune: { type: "string", default: "off" },
    tree: { type: "string" },
  },
});
const numbers = (text: string) => text === "" ? [] : text.split(",").map(Number);
const batches = numbers(flags.batches);
const tier = flags.tree === undefined ? chain(Number(flags.steps)) : treeNamed(flags.tree);
const [depth, context] = [tier.depth, Number(flags.context)];
const maxBatch = Math.max(...batches);
const random = flags.target === undefined
  ? undefined
  : { target: flags.target, ...flags.draft === undefined ? {} : { draft: flags.draft } };

const shares = flags.tree === undefined ? numbers(flags.shares) : [];
const partial = shares.length > 0;
const policy = {
  ...fixed(tier),
  tiers: [chain(0), tier],
  ...partial ? { confident: true, packed: true } : {},
};
using engine = await openEngine({
  model: random ? { random } : {},
  device: { profile: true, autotune: flags.autotune === "on" ? "on" : "off" },
  limits: { maxBatch, contextLength: context + 8 * (depth + 1) + tier.rows },
  hooks: { plan: { policy } },
});
const { runner } = engine;

interface Setting {
  readonly name: string;
  /** Verify rows, padding included. */
  readonly rows: number;
  readonly asked: Omit<RoundRequest, "count">;
}

function settings(batch: number): Setting[] {
  const all = batch * depth;
  const partial = shares.flatMap((share): Setting[] => {
    const drafts = Math.round(share * all);
    const depths = Array.from(
      { length: batch },
      (_, i) => Math.floor(drafts / batch) + Number(i < drafts % batch),
    );
    const verify = {
      drafts,
      slope: 1,
      minConfidence: 0,
      intercepts: Array<number>(depth).fill(0),
    };
    const rows = packedRows(batch + drafts, { batch, depth }) ?? batch + all;
    return [
      { name: "depths", rows, asked: { shape: tier, depths } },
      { name: "chosen", rows, asked: { shape: tier, verify } },
    ];
  });
  return [
    { name: "plain", rows: batch, asked: { shape: chain(0) } },
    ...partial,
    { name: "all", rows: batch * tier.rows, asked: { shape: tier } },
  ];
}

/** Opens sequences whose prompts fill the context. */
async function prompted(sequences: readonly OpenSequence[]): Promise<void> {
  for (const [i, sequence] of sequences.entries()) {
    runner.setSampling(sequence, { ...GREEDY, seed: i });
    const ids = Array.from({ length: context }, (_, at) => (at * 31 + i * 7) % 1000 + 3);
    await prefillPrompt(runner, sequence, ids);
  }
}

async function timed(batch: number): Promise<string[][]> {
  using stack = new DisposableStack();
  const sequences = Array.from({ length: batch }, () => stack.use(openSequence(runner)));
  for (const sequence of sequences) runner.reserve(sequence, runner.capacity.contextLength);
  await prompted(sequences);
  const all = settings(batch);
  const found = all.map((): RoundResult[] => []);
  for (let time = 0; time < Number(flags.times) + 2; time++) {
    for (const [i, { asked }] of all.entries()) {
      const [result] = await runner.rounds(sequences, { ...asked, count: 1 });
      if (result && time >= 2) found[i]?.push(result); // the first two warm up
      const long = sequences.some(({ stored }) => stored + depth + 1 > context + 6 * (depth + 1));
      if (!long) continue;
      for (const sequence of sequences) rewind(sequence, 0);
      await prompted(sequences);
    }
  }
  return all.map(({ name, rows }, i) => {
    const of = (part: "draftMs" | "verifyMs" | "extendMs") =>
      median((found[i] ?? []).map((one) => one[part])).toFixed(3);
    return [String(batch), name, String(rows), of("draftMs"), of("verifyMs"), of("extendMs")];
  });
}

/** Columns of the table. Rows are printed as they come, so that a run that is cut short has printed some. */
const HEAD = ["batch", "drafts", "rows", "draft ms", "verify ms", "extend ms"];
const say = (text: string) => process.stdout.write(`${text}\n`);
const line = (cells: readonly string[]) =>
  `| ${cells.map((cell, i) => cell.padStart(HEAD[i]?.length ?? 0)).join(" | ")} |`;

say(engine.info.device.adapter);
say(line(HEAD));
say(
  `| ${
    HEAD.map((name, i) => i === 1 ? ":".padEnd(name.length, "-") : ":".padStart(name.length, "-"))
      .join(" | ")
  } |`,
);
for (const batch of batches) {
  for (const row of await timed(batch)) say(line(row));
}
