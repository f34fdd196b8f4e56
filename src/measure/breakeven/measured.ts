import { type BreakEvenRow, fitAlpha, type RoundCosts } from "../../speculate/break_even.ts";
import { breakEven } from "../../speculate/break_even.ts";
import { roundParts } from "../../speculate/costs/lookup.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import type { BenchRow } from "../row.ts";
import type { BenchSession, RoundSample } from "../runner.ts";
import { median, type Ratio } from "../statistics.ts";

/** Measured cost and gain of rounds with one number of draft steps. Costs are in plain decoding steps. */
export interface MeasuredSteps extends RoundCosts {
  readonly steps: number;
  /** Median milliseconds per round of draft and draft-extend: K forward passes of the draft head. */
  readonly draftMs: number;
  /** Median milliseconds per round of verify and the host's work. */
  readonly verifyMs: number;
  /** Mean accept length: tokens per round, with the bonus token. */
  readonly tokens: number;
  /** Tokens/s over those of plain decoding. */
  readonly speedup: Ratio;
}

/** The measured parameters of the equation for one machine and one pair of models. */
export interface Measured {
  readonly alpha: number;
  /** Share of the rounds with the most steps that accepted position k and all positions before it. */
  readonly acceptedByPosition: readonly number[];
  /** Median milliseconds of a plain decoding step, with the host's work. */
  readonly plainMs: number;
  readonly steps: readonly MeasuredSteps[];
  /** The speed of plain decoding measured again over that of plain decoding. */
  readonly noise: Ratio;
  readonly facts: readonly (readonly [string, string])[];
  readonly simulated: boolean;
}

/**
 * What text, JSON and page are written from: alpha, a row of the equation for each number of steps, and the measurement
 * if there was one.
 */
export interface BreakEvenReport {
  readonly alpha: number;
  /** The given costs, or the measured ones of the fastest number of steps. */
  readonly costs: RoundCosts;
  readonly rows: readonly BreakEvenRow[];
  readonly measured: Measured | undefined;
}

/** Evaluates the equation for each number of steps with the same draft cost c and verify cost v. */
export function givenReport(
  alpha: number,
  costs: RoundCosts,
  steps: readonly number[],
): BreakEvenReport {
  const { row } = breakEven();
  return { alpha, costs, rows: steps.map((k) => row(alpha, k, costs)), measured: undefined };
}

/** Wraps a session. `rounds` collects the rounds of its cells that had the whole batch in flight, warm-up excluded. */
export function keepingRounds(
  session: BenchSession,
): { readonly session: BenchSession; readonly rounds: readonly RoundSample[] } {
  const rounds: RoundSample[] = [];
  const runCell: BenchSession["runCell"] = async (spec, signal) => {
    const cell = await session.runCell(spec, signal);
    if (spec.repeat >= 0) rounds.push(...cell.rounds.filter(({ batch }) => batch === spec.batch));
    return cell;
  };
  return { session: { ...session, runCell }, rounds };
}

/**
 * Evaluates the equation with the measured costs of each number of steps.
 *
 * @param rows of a sweep of one case, including plain decoding.
 * @param rounds of that sweep, with the whole batch in flight.
 * @param costs is used in place of the times of `rounds` if given; it holds for short contexts.
 */
export function measuredReport(
  rows: readonly BenchRow[],
  rounds: readonly RoundSample[],
  facts: Measured["facts"],
  costs?: CostTable,
): BreakEvenReport {
  const { row, best } = breakEven();
  const drafting = rows.filter(({ setting_kind }) => setting_kind === "static")
    .toSorted((a, b) => (a.num_steps ?? 0) - (b.num_steps ?? 0));
  const partsOf = costs ? tableParts(costs, rows[0]?.batch ?? 1) : medianParts(rounds);
  const plain = partsOf(0);
  const plainMs = plain.draftMs + plain.verifyMs;
  const steps = drafting.map((one) => measuredSteps(one, partsOf, plainMs));
  const acceptedByPosition = drafting.at(-1)?.acceptance_per_position ?? [];
  const alpha = fitAlpha(acceptedByPosition);
  const found = steps.map((costs) => row(alpha, costs.steps, costs));
  const fastest = best(found)?.steps;
  const { draft, verify } = steps.find((one) => one.steps === fastest) ?? steps[0] ??
    { draft: 0, verify: 1 };
  const again = rows.find(({ setting_kind }) => setting_kind === "plain again");
  const measured = {
    alpha,
    acceptedByPosition,
    plainMs,
    steps,
    noise: again?.speedup ?? { ratio: 1, low: null, high: null },
    facts: costs ? [...facts, ["costs", "from the cost table"] as const] : facts,
    simulated: rows.some(({ acceptance }) => acceptance === "SIMULATED"),
  };
  return { alpha, costs: { draft, verify }, rows: found, measured };
}

/** Milliseconds of a round: the head's forwards, and the rest. */
type Parts = Pick<MeasuredSteps, "draftMs" | "verifyMs">;

/** Medians: on a busy machine some rounds take ten times as long as others. */
function medianParts(rounds: readonly RoundSample[]): (steps: number) => Parts {
  return (steps) => {
    const own = rounds.filter(({ numSteps }) => numSteps === steps);
    // Plain decoding as a whole: all of it is the target's and the host's.
    if (steps === 0) return { draftMs: 0, verifyMs: median(own.map(({ ms }) => ms)) };
    return {
      draftMs: median(own.map(({ draftMs, extendMs }) => draftMs + extendMs)),
      verifyMs: median(own.map(({ verifyMs, hostMs }) => verifyMs + hostMs)),
    };
  };
}

function tableParts(costs: CostTable, batch: number): (steps: number) => Parts {
  return (steps) => {
    const { draft, verify, extend, host } = roundParts(costs, { batch, steps, cells: 0 });
    return { draftMs: draft + extend, verifyMs: verify + host };
  };
}

/** c = (draft + draft-extend) / K / plain step, v = (verify + host) / plain step. */
function measuredSteps(
  row: BenchRow,
  partsOf: (steps: number) => Parts,
  plainMs: number,
): MeasuredSteps {
  const steps = row.num_steps ?? 0;
  const { draftMs, verifyMs } = partsOf(steps);
  return {
    steps,
    draftMs,
    verifyMs,
    draft: draftMs / steps / plainMs,
    verify: verifyMs / plainMs,
    tokens: row.mean_accept_length ?? 1,
    speedup: row.speedup,
  };
}
