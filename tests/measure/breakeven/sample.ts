import {
  type BreakEvenReport,
  keepingRounds,
  measuredReport,
} from "../../../src/measure/breakeven/measured.ts";
import { armsOf } from "../../../src/measure/plan.ts";
import type { BenchRow } from "../../../src/measure/row.ts";
import type { CellResult, CellSpec } from "../../../src/measure/runner.ts";
import { sweep } from "../../../src/measure/sweep.ts";
import { fakeCell, fakeSession, SUBJECT } from "../fake.ts";

/** The result of measuring 1, 3 and 7 steps on a made-up machine. */
export async function sampleReport(
  { cell = fakeCell, blocks = 3, model = "fake-1B", subject = SUBJECT }: {
    cell?: (spec: CellSpec, turn: number) => CellResult;
    blocks?: number;
    model?: string;
    subject?: typeof SUBJECT;
  } = {},
): Promise<{ report: BreakEvenReport; rows: readonly BenchRow[] }> {
  const fake = fakeSession((spec, _signal, turn) => Promise.resolve(cell(spec, turn)), subject);
  const { session, rounds } = keepingRounds(fake);
  const one = { workload: "phases", batch: 1, outputTokens: 128, temperature: 0, depth: 0 };
  const plan = {
    cases: [one],
    arms: armsOf({ numSteps: [3, 1, 7] }),
    blocks,
    seed: 1,
  };
  const rows: BenchRow[] = [];
  const options = { present: new Map(), signal: new AbortController().signal };
  for await (const event of sweep(plan, session, options)) {
    if (event.kind === "rows") rows.push(...event.rows);
  }
  return { report: measuredReport(rows, rounds, [["model", model]]), rows };
}
