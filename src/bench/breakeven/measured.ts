import { type BreakEvenRow, fitAlpha, type RoundCosts } from "../../speculate/break_even.ts";
import { breakEven } from "../../speculate/break_even.ts";
import type { BenchRow } from "../row.ts";
import type { Ratio } from "../statistics.ts";

/** What rounds of one number of steps cost and gained here. Costs in plain steps. */
export interface MeasuredSteps extends RoundCosts {
  readonly steps: number;
  /** Mean milliseconds a round: draft and draft-extend, K forwards of the head. */
  readonly draftMs: number;
  /** Verify, and what the host adds. */
  readonly verifyMs: number;
  /** Mean accept length, the bonus included. */
  readonly tokens: number;
  /** Tokens/s over plain decoding's. */
  readonly speedup: Ratio;
}

/** A machine and a pair of models in the terms of the equation. */
export interface Measured {
  readonly alpha: number;
  /** Share of the deepest rounds that accepted position k and all before. */
  readonly acceptedByPosition: readonly number[];
  /** Mean milliseconds of a plain decoding step, the host's part included. */
  readonly plainMs: number;
  readonly steps: readonly MeasuredSteps[];
  /** Plain decoding against itself. */
  readonly noise: Ratio;
  readonly facts: readonly (readonly [string, string])[];
  readonly simulated: boolean;
}

/** All that is shown: alpha, rows of the equation, and what was measured where it was. */
export interface BreakEvenReport {
  readonly alpha: number;
  /** Those of the fastest measured steps, where the costs are measured. */
  readonly costs: RoundCosts;
  readonly rows: readonly BreakEvenRow[];
  readonly measured: Measured | undefined;
}

/** The equation with one c and one v. */
export function givenReport(
  alpha: number,
  costs: RoundCosts,
  steps: readonly number[],
): BreakEvenReport {
  const { row } = breakEven();
  return { alpha, costs, rows: steps.map((k) => row(alpha, k, costs)), measured: undefined };
}

/**
 * The equation with each number of steps' own costs. `rows` are those of a sweep of one case, with
 * plain decoding among them.
 */
export function measuredReport(
  rows: readonly BenchRow[],
  facts: Measured["facts"],
): BreakEvenReport {
  const { row, best } = breakEven();
  const ofKind = (kind: BenchRow["setting_kind"]) =>
    rows.filter(({ setting_kind }) => setting_kind === kind);
  const [plain] = ofKind("plain");
  const [again] = ofKind("plain again");
  const drafting = ofKind("static").toSorted((a, b) => (a.num_steps ?? 0) - (b.num_steps ?? 0));
  const plainMs = plain?.round_ms.total ?? NaN;
  const steps = drafting.map((one) => measuredSteps(one, plainMs));
  const acceptedByPosition = drafting.at(-1)?.acceptance_per_position ?? [];
  const alpha = fitAlpha(acceptedByPosition);
  const found = steps.map((costs) => row(alpha, costs.steps, costs));
  const fastest = best(found)?.steps ?? 1;
  const costs = steps.find((one) => one.steps === fastest) ?? steps[0] ?? { draft: 0, verify: 1 };
  const measured = {
    alpha,
    acceptedByPosition,
    plainMs,
    steps,
    noise: again?.speedup ?? { ratio: 1, low: null, high: null },
    facts,
    simulated: rows.some(({ acceptance }) => acceptance === "SIMULATED"),
  };
  return { alpha, costs: { draft: costs.draft, verify: costs.verify }, rows: found, measured };
}

/** c = (draft + draft-extend) / K / plain step, v = (verify + host) / plain step. */
function measuredSteps(row: BenchRow, plainMs: number): MeasuredSteps {
  const { draft, extend, verify, host } = row.round_ms;
  const steps = row.num_steps ?? 0;
  const [draftMs, verifyMs] = [draft + extend, verify + host];
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
