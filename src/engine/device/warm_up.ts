import type { Gpu } from "../../gpu/device.ts";
import { submit } from "../../gpu/program.ts";
import { GREEDY_SAMPLING, PLAIN_SAMPLING } from "./choice/choice.ts";
import type { DraftShape } from "../../speculate/round_shape.ts";
import { partialRounds } from "./packed/packed_rounds.ts";
import { batchBuckets } from "./buckets.ts";
import type { Programs } from "./programs.ts";
import type { CompileProgress, FirstRuns } from "./first_runs.ts";
import type { Submitter } from "./submit/submit.ts";

/** What programs are run on with no lane: adapters compile at the first run. */
export interface WarmUp {
  readonly gpu: Gpu;
  readonly programs: Programs;
  readonly submitter: Submitter;
  readonly firsts: FirstRuns;
  readonly onCompile: (progress: CompileProgress) => void;
  /** Slots. */
  readonly batch: number;
  /** See `promptRun`. */
  readonly run: number;
}

/** The rounds of these tiers at every batch bucket; the rest is as in `Runner.warmUp`. */
export async function runTiers(
  { gpu, programs, submitter, batch: slots, firsts, onCompile }: WarmUp,
  shapes: readonly DraftShape[],
  { proposed = false, beside = [] }: {
    readonly proposed?: boolean | undefined;
    readonly beside?: readonly DraftShape[] | undefined;
  },
): Promise<void> {
  for (const batch of batchBuckets(slots)) {
    for (const { depth } of beside.filter(({ depth }) => depth > 1)) {
      submit(gpu, await programs.levels(depth, batch));
    }
    for (const shape of shapes) {
      const round = { ...shape, batch, proposed };
      const work = await programs.round({ ...round, choice: GREEDY_SAMPLING });
      await firsts.run(work.programs, onCompile);
      await submitter.run(work);
      await programs.round({ ...round, choice: PLAIN_SAMPLING });
    }
  }
}

/** Makes the programs of prompts of every length and runs those of the shortest, of one and of two in a forward. */
export async function runPrompts(
  { programs, submitter, firsts, onCompile, batch, run }: WarmUp,
): Promise<void> {
  await programs.makePrompts();
  const { body, draft } = await programs.prompt({ rows: 1 });
  const shortest = [[body, draft]];
  if (batch > 1) {
    const two = await programs.prompt({ rows: 2 * run, perSlot: run, heads: 2 });
    shortest.push([two.body, two.head, two.draft, two.draftHead]);
  }
  for (const of of shortest) {
    await firsts.run(of, onCompile);
    await submitter.run({ programs: of, words: 0 });
  }
}

/** Rounds of these tiers that verify a part of the drafts, where they need pipelines of their own. */
export async function runPacked(
  { programs, submitter, batch, firsts, onCompile }: WarmUp,
  shapes: readonly DraftShape[],
): Promise<void> {
  for (const of of partialRounds(shapes, batch, programs.ranks)) {
    const { pipelines } = programs.created;
    const work = await programs.round(of);
    if (programs.created.pipelines === pipelines) continue;
    await firsts.run(work.programs, onCompile);
    await submitter.run(work);
  }
}
