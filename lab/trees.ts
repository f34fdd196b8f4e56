// Tokens a round by task, for chains and trees drafted by the embedded model's heads.
//
//   deno run -A lab/trees.ts [--prompts N] [--tiers 3,5,5:4:8]
//
// Every answer is compared with that of plain decoding. The counts do not depend on the machine.
import assert from "node:assert/strict";
import process from "node:process";
import { parseArgs } from "node:util";
import { markdownTable } from "markdown-table";
import { drawFrom } from "../src/measure/workload/draw.ts";
import { taskPrompt, TASKS } from "../src/measure/workload/tasks.ts";
import { statically } from "../src/engine/drafting.ts";
import { type LocalEngine, openEngine } from "../src/engine/open.ts";
import { resultOf } from "../src/engine/schedule/events.ts";
import { chain, type DraftShape, tierText } from "../src/speculate/round_shape.ts";
import { GREEDY } from "../src/speculate/sampling.ts";
import { treeNamed } from "../src/speculate/tree_shape.ts";

const { values: flags } = parseArgs({
  options: {
    prompts: { type: "string", default: "4" },
    tiers: { type: "string", default: "3,5,7,5:4:8,5:4:16,6:10:32,8:10:60" },
  },
});

const BATCH = 8;
const tiers = flags.tiers.split(",")
  .map((text) => text.includes(":") ? treeNamed(text) : chain(Number(text)));
const draw = drawFrom(1, 0);
const prompts = TASKS.flatMap((task) =>
  Array.from({ length: Number(flags.prompts) }, () => ({ task, content: taskPrompt(task, draw) }))
);

interface Answer {
  readonly task: string;
  readonly text: string;
  readonly tokens: number;
  readonly rounds: number;
}

async function answers(algorithm: "EAGLE3" | "EAGLE", tier: DraftShape): Promise<Answer[]> {
  using engine: LocalEngine = await openEngine({
    model: { algorithm },
    limits: { maxBatch: BATCH },
    hooks: { plan: statically(tier) },
  });
  return await Promise.all(prompts.map(async ({ task, content }) => {
    const { text, outputIds, speculative } = await resultOf(engine.submit({
      promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
      sampling: GREEDY,
      maxTokens: 160,
      stop: [],
      ignoreEos: false,
    }));
    return { task, text, tokens: outputIds.length - 1, rounds: speculative.rounds };
  }));
}

function perRound(answers: readonly Answer[]): string {
  const sum = (of: (answer: Answer) => number) => answers.reduce((all, one) => all + of(one), 0);
  return (sum(({ tokens }) => tokens) / sum(({ rounds }) => rounds)).toFixed(2);
}

const plain = await answers("EAGLE3", chain(0));
for (const algorithm of ["EAGLE3", "EAGLE"] as const) {
  const columns: Answer[][] = [];
  for (const tier of tiers) {
    const found = await answers(algorithm, tier);
    assert.deepEqual(found.map(({ text }) => text), plain.map(({ text }) => text));
    columns.push(found);
  }
  const row = (name: string, of: (answer: Answer) => boolean) => [
    ...[name, ...columns.map((column) => perRound(column.filter(of)))],
  ];
  const table = [
    [algorithm, ...tiers.map(tierText)],
    ...TASKS.map((task) => row(task, (answer) => answer.task === task)),
    row("all", () => true),
  ];
  process.stdout.write(`${markdownTable(table, { align: ["l", ...tiers.map(() => "r")] })}\n\n`);
}
