// Whether texts with drafts equal plain decoding's at a published shape, whose kernels are other ones than those of the
// small models in tests:
//
//   deno run -A lab/wide_texts.ts [--target lab/shapes/qwen35_9b.json] [--quantize q8] [--webgpu dawn] [--steps 3]
//     [--tokens 40]
//
// Weights are random. Two requests go side by side; their drafts are right for none to all of the steps, drawn anew
// each round, and then wrong. Prints how many drafts were accepted; exit code 1 where a text differs.
import process from "node:process";
import { parseArgs } from "node:util";
import { type HostDrafter, pureDrafter } from "../src/draft/host_drafter.ts";
import { openEngine } from "../src/engine/open.ts";
import { resultOf } from "../src/engine/schedule/events.ts";
import { hash32 } from "../src/speculate/noise.ts";
import { chains } from "../src/speculate/round_shape.ts";
import { GREEDY } from "../src/speculate/sampling.ts";

const { values: flags } = parseArgs({
  options: {
    target: { type: "string" },
    quantize: { type: "string" },
    webgpu: { type: "string", default: "builtin" },
    steps: { type: "string", default: "3" },
    tokens: { type: "string", default: "40" },
  },
});
const target = flags.target ?? "lab/shapes/qwen35_9b.json";
const [steps, maxTokens] = [Number(flags.steps), Number(flags.tokens)];
const quantize = (["q8", "q4"] as const).find((format) => format === flags.quantize);
const webgpu = flags.webgpu === "dawn" ? "dawn" : "builtin";
const prompts = [20, 35].map((length, seed) =>
  Array.from({ length }, (_, i) => 3 + (37 * i + 11 * seed) % 300)
);

function open(drafter?: HostDrafter) {
  return openEngine({
    model: { random: { target }, algorithm: "NONE", ...quantize ? { quantize } : {} },
    device: { autotune: "off", costs: "off", webgpu },
    limits: { contextLength: 64 + maxTokens, maxBatch: drafter ? prompts.length : 1 },
    hooks: { onWarning: () => {}, ...drafter ? { drafter } : {} },
  });
}

function answer(engine: Awaited<ReturnType<typeof open>>, promptIds: readonly number[]) {
  const request = { promptIds, sampling: GREEDY, maxTokens, stop: [], ignoreEos: true };
  return resultOf(engine.submit(request));
}

/** Each prompt with what plain decoding gives of it. */
async function plainTexts(): Promise<number[][]> {
  using engine = await open();
  const texts: number[][] = [];
  for (const ids of prompts) texts.push([...ids, ...(await answer(engine, ids)).outputIds]);
  return texts;
}

function knowing(texts: readonly (readonly number[])[]): HostDrafter {
  return pureDrafter({
    name: "known",
    shapes: chains([steps]),
    propose(ids, { count, depth }) {
      const text = texts.find((each) => ids.every((id, i) => id === each[i])) ?? [];
      const right = hash32(steps, ids.length, ids.at(-1) ?? 0) % (steps + 1);
      const tokens = text.slice(ids.length, ids.length + Math.min(count, depth, steps))
        .map((id, i) => i === right ? id ^ 1 : id);
      return { tokens, parents: tokens.map((_, i) => i) };
    },
  });
}

const texts = await plainTexts();
using engine = await open(knowing(texts));
const results = await Promise.all(prompts.map((ids) => answer(engine, ids)));
const same = results.every(({ outputIds }, i) =>
  [...prompts[i] ?? [], ...outputIds].join() === texts[i]?.join()
);
const accepted = results.map(({ speculative }) => speculative.accepted_tokens);
const said = same ? "the same texts" : "OTHER TEXTS";
process.stdout.write(`${target}: ${said}, ${accepted} drafts accepted\n`);
process.exitCode = same ? 0 : 1;
