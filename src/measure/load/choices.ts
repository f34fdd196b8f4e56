import { sum } from "../statistics.ts";
import type { LoadRound } from "./session.ts";

/** Numbers of rounds by batch size and then by draft steps: `{ "4": { "0": 10, "3": 25 } }`. */
export type StepsByBatch = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Counts the rounds by batch size and draft steps. */
export function stepsByBatch(rounds: readonly LoadRound[]): StepsByBatch {
  const counts: Record<string, Record<string, number>> = {};
  for (const { batch, numSteps } of rounds) {
    const of = counts[batch] ??= {};
    of[numSteps] = (of[numSteps] ?? 0) + 1;
  }
  return counts;
}

/** The sums of several counts. */
export function addedSteps(all: readonly StepsByBatch[]): StepsByBatch {
  const counts: Record<string, Record<string, number>> = {};
  for (const [batch, steps] of all.flatMap((each) => Object.entries(each))) {
    const of = counts[batch] ??= {};
    for (const [step, count] of Object.entries(steps)) of[step] = (of[step] ?? 0) + count;
  }
  return counts;
}

/** The batch sizes above one power of 2 up to the next, with the mean number of draft steps chosen there. */
export interface BatchRange {
  /** `1`, `2`, `3-4`, `5-8`. */
  readonly name: string;
  readonly rounds: number;
  readonly meanSteps: number;
}

/** Groups counts by ranges of batch sizes, smallest first. */
export function batchRanges(counts: StepsByBatch): BatchRange[] {
  const cells = Object.entries(counts).flatMap(([batch, steps]) =>
    Object.entries(steps).map(([step, rounds]) => ({ batch: +batch, step: +step, rounds }))
  );
  const ranges = Map.groupBy(cells, ({ batch }) => Math.ceil(Math.log2(batch)));
  return [...ranges].toSorted(([a], [b]) => a - b).map(([power, cells]) => {
    const [low, high] = [power < 1 ? 1 : 2 ** (power - 1) + 1, 2 ** power];
    const rounds = sum(cells.map((cell) => cell.rounds));
    const steps = sum(cells.map((cell) => cell.rounds * cell.step));
    return { name: low === high ? `${low}` : `${low}-${high}`, rounds, meanSteps: steps / rounds };
  });
}
