import { drawFrom } from "../../src/measure/workload/draw.ts";
import { armsOf } from "../../src/measure/plan.ts";
import type { BenchRow } from "../../src/measure/row.ts";
import type {
  BenchSession,
  CellResult,
  CellSpec,
  RoundSample,
  Subject,
} from "../../src/measure/runner.ts";
import { sweep } from "../../src/measure/sweep.ts";

export const SUBJECT: Subject = {
  model: "fake-1B",
  draft: "fake-eagle3",
  device: "Fake GPU, vulkan",
  simulated: false,
};

/** Costs of a machine on which drafting pays only at small batches. */
const VERIFY_MS = 4;
const DRAFT_MS = 0.5;

/**
 * One cell of a made-up machine. The acceptance probability alternates between easy and hard
 * stretches, verifying more rows costs more the larger the batch, and everything is noisy.
 */
export function fakeCell(spec: CellSpec, turn: number = 0): CellResult {
  const draw = drawFrom(spec.seed, turn);
  const noise = () => 1 + (draw.integer(-1000, 1000) / 1000) * 0.05;
  const slow = noise();
  const rounds: RoundSample[] = [];
  const wanted = spec.batch * spec.outputTokens * 4;
  const switches: CellResult["switches"][number][] = [];
  let [tokens, tMs] = [0, 0];
  while (tokens < wanted) {
    const numSteps = stepsOf(spec, tokens / wanted);
    const before = rounds.at(-1)?.numSteps;
    if (before !== undefined && before !== numSteps) {
      const reason = numSteps > before ? "accepted enough" : "accepted too few";
      switches.push({ round: rounds.length, from: before, to: numSteps, reason });
    }
    const round = fakeRound(numSteps, {
      spec,
      draw,
      slow: slow * noise(),
      tMs,
      easy: easy(tokens / wanted),
    });
    rounds.push(round);
    tMs += round.ms;
    tokens += round.accepted.reduce((sum, count) => sum + count + 1, 0);
  }
  const time = (steps: number) =>
    rounds.filter(({ numSteps }) => numSteps === steps).reduce((sum, { ms }) => sum + ms, 0) / tMs;
  const tiers = [...new Set(rounds.map(({ numSteps }) => numSteps))].sort();
  return {
    tokens,
    seconds: tMs / 1000,
    rounds,
    prefills: { tokens: 30 * spec.batch, ms: 0.25 * tMs },
    requests: Array.from({ length: spec.batch }, (_, at) => ({
      ttftMs: 20 * noise(),
      prompt: { tokens: spec.promptTokens ?? 30, ms: 25 * noise() },
      answer: { tokens: tokens / spec.batch, ms: tMs },
      tpotMs: tMs / (tokens / spec.batch),
      itlMs: rounds.slice(0, 50).map(({ ms }) => ms),
      outputHash: `${spec.seed}-${at}`,
    })),
    switches,
    switchCount: switches.length,
    tierShare: Object.fromEntries(tiers.map((steps) => [steps, time(steps)])),
  };
}

function easy(progress: number): boolean {
  return Math.floor(progress * 4) % 2 === 0;
}

function stepsOf({ setting, batch }: CellSpec, progress: number): number {
  if (setting.kind === "plain") return 0;
  if (setting.kind === "static") return setting.numSteps;
  // The controller follows a phase a little late.
  const top = batch >= 8 ? 3 : 7;
  return easy(Math.max(0, progress - 0.03)) ? top : 1;
}

function fakeRound(
  numSteps: number,
  { spec, draw, slow, tMs, easy }: {
    spec: CellSpec;
    draw: ReturnType<typeof drawFrom>;
    slow: number;
    tMs: number;
    easy: boolean;
  },
): RoundSample {
  const accepted = Array.from({ length: spec.batch }, () => {
    let count = 0;
    while (count < numSteps && draw.integer(0, 99) < (easy ? 85 : 35)) count++;
    return count;
  });
  const draftMs = numSteps * DRAFT_MS * slow;
  const verifyMs = VERIFY_MS * (1 + 0.02 * numSteps * spec.batch + 0.03 * spec.batch) * slow;
  const extendMs = numSteps === 0 ? 0 : 0.4 * slow;
  const hostMs = 0.3 * slow;
  const ms = draftMs + verifyMs + extendMs + hostMs;
  const times = { draftMs, verifyMs, extendMs, hostMs, ms, tMs };
  const drafts = accepted.map(() => numSteps);
  return { numSteps, batch: spec.batch, drafts, accepted, together: 1, ...times };
}

/** A session of the made-up machine. `cells` has the cells that it was asked to measure. */
export function fakeSession(
  runCell: (spec: CellSpec, signal: AbortSignal, turn: number) => Promise<CellResult> = (
    spec,
    _signal,
    turn,
  ) => Promise.resolve(fakeCell(spec, turn)),
  subject: Subject = SUBJECT,
): BenchSession & { readonly cells: CellSpec[]; readonly disposed: () => boolean } {
  const cells: CellSpec[] = [];
  let disposed = false;
  return {
    subject,
    cells,
    runCell: (spec, signal) => {
      cells.push(spec);
      return runCell(spec, signal, cells.length);
    },
    disposed: () => disposed,
    [Symbol.dispose]() {
      disposed = true;
    },
  };
}

/** Rows of a sweep over the made-up machine. */
export async function sampleRows(
  { batch, numSteps, policies = [], blocks, subject = SUBJECT }: {
    batch: readonly number[];
    numSteps: readonly number[];
    policies?: readonly string[];
    blocks: number;
    subject?: Subject;
  },
): Promise<BenchRow[]> {
  const cases = batch.map((batch) => ({
    workload: "phases",
    batch,
    outputTokens: 128,
    temperature: 0,
    depth: 0,
  }));
  const named = policies.map((policy) => [policy, { policy }] as const);
  const plan = { cases, arms: armsOf({ numSteps, policies: named }), blocks, seed: 1 };
  const rows: BenchRow[] = [];
  const options = { present: new Map(), signal: new AbortController().signal };
  for await (const event of sweep(plan, fakeSession(undefined, subject), options)) {
    if (event.kind === "rows") rows.push(...event.rows);
  }
  return rows;
}
