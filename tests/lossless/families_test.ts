/**
 * Every architecture: requests side by side, of which some wait and some are preempted, and their next turns, with
 * drafts that are right up to any place, have the texts that plain decoding gives each alone.
 */
import assert from "node:assert/strict";
import { type HostDrafter, pureDrafter } from "../../src/draft/host_drafter.ts";
import { type GenerateResult, resultOf } from "../../src/engine/schedule/events.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { drawn, drawnFrom, EXHAUSTIVE } from "../exhaustive.ts";
import { assertNothingHeld } from "../engine/held.ts";
import { type LocalEngine, openEngine } from "../engine/open.ts";
import { folderOf } from "../engine/speculated.ts";
import { goldensWith } from "../golden_models.ts";

/** Those that no other test decodes with drafts. */
const ONLY_HERE: readonly string[] = ["granite", "phi3", "seed_oss", "smollm3"];

interface Case {
  readonly steps: number;
  readonly batch: number;
}

const CASES: readonly Case[] = [0, 1, 3, 7].flatMap((steps) =>
  [1, 4].map((batch) => ({ steps, batch }))
).filter(({ steps, batch }) => steps > 0 || batch > 1);

const CONTEXT = 128;
/** Tokens of keys and values for four requests: fewer than they come to. */
const FEW_TOKENS = 272;
const ANSWER = 30;

/** Random weights in the golden's shapes, which need no tokenizer. */
function open(
  name: string,
  { drafter, ...limits }: {
    readonly drafter?: HostDrafter;
    readonly maxBatch?: number;
    readonly maxKvTokens?: number;
    readonly maxBatchedRows?: number;
    readonly prefixCache?: boolean;
  },
): Promise<LocalEngine> {
  return openEngine({
    model: { random: { target: `${folderOf(name)}/config.json` }, algorithm: "NONE" },
    limits: { ...limits, contextLength: CONTEXT },
    hooks: { onWarning: () => {}, ...drafter && { drafter } },
  });
}

const idsOf = (length: number, seed: number) =>
  Array.from({ length }, (_, j) => 3 + (j * 37 + seed * 11) % 300);

function generate(engine: LocalEngine, promptIds: readonly number[]): Promise<GenerateResult> {
  const sampling = GREEDY;
  return resultOf(
    engine.submit({ promptIds, sampling, maxTokens: ANSWER, stop: [], ignoreEos: true }),
  );
}

/** Goes on as a text that is known does, right for none to all of its drafts, drawn anew each time, and then wrong. */
function knowing(texts: readonly (readonly number[])[], steps: number): HostDrafter {
  return pureDrafter({
    name: "known",
    shapes: chains([steps]),
    propose(ids, { count, depth }) {
      const text = texts.find((each) => ids.every((id, i) => id === each[i])) ?? [];
      const next = text.slice(ids.length, ids.length + Math.min(count, depth, steps));
      const right = hash32(steps, ids.length, ids.at(-1) ?? 0) % (steps + 1);
      const tokens = next.map((id, i) => i === right ? id ^ 1 : id);
      return { tokens, parents: tokens.map((_, i) => i) };
    },
  });
}

/** Two turns of five conversations, of which two begin alike: prompts, and the answers of each alone. */
async function plainTurns(name: string) {
  using plain = await open(name, { prefixCache: false });
  const first = [20, 35, 50, 11].map(idsOf);
  first.push([...(first[2] as number[]).slice(0, 40), ...idsOf(6, 9)]);
  const turns: { readonly prompts: number[][]; readonly answers: readonly number[][] }[] = [];
  for (let prompts = first; turns.length < 2;) {
    const answers: number[][] = [];
    for (const ids of prompts) answers.push([...(await generate(plain, ids)).outputIds]);
    turns.push({ prompts, answers });
    prompts = prompts.map((ids, i) => [...ids, ...answers[i] ?? [], ...idsOf(7, i)]);
  }
  return turns;
}

for (const name of goldensWith("config.json")) {
  const { test } = ONLY_HERE.includes(name) ? Deno : drawn;
  test(`${name}: drafts, batches, preemption and turns change no text`, async (t) => {
    const turns = await plainTurns(name);
    const texts = turns.flatMap(({ prompts, answers }) =>
      prompts.map((ids, i) => [...ids, ...answers[i] ?? []])
    );
    let preemptions = 0;
    for (const { steps, batch } of EXHAUSTIVE ? CASES : [drawnFrom(CASES, name)]) {
      await t.step(`${steps} steps, batches of ${batch}`, async () => {
        using engine = await open(name, {
          maxBatch: batch,
          maxBatchedRows: 16,
          ...batch > 1 && { maxKvTokens: FEW_TOKENS },
          ...steps > 0 && { drafter: knowing(texts, steps) },
        });
        let [drafted, accepted] = [0, 0];
        for (const { prompts, answers } of turns) {
          const results = await Promise.all(prompts.map((ids) => generate(engine, ids)));
          assert.deepEqual(results.map(({ outputIds }) => outputIds), answers);
          for (const { speculative } of results) {
            drafted += speculative.draft_tokens;
            accepted += speculative.accepted_tokens;
          }
        }
        if (steps > 0) assert.ok(accepted > 0 && accepted < drafted, `${accepted} of ${drafted}`);
        preemptions += engine.counts.preemptions;
        assertNothingHeld(engine);
      });
    }
    if (EXHAUSTIVE) assert.ok(preemptions > 0, "nothing was preempted");
  });
}
