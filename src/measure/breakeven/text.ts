import { breakEven } from "../../speculate/break_even.ts";
import { digits, places, ratioText } from "../formats.ts";
import { cellColumns, type Column, markdownText, numbers } from "../table.ts";
import type { BreakEvenReport, Measured, MeasuredSteps } from "./measured.ts";
import { ROW_TITLES, wording } from "./wording.ts";

const SIMULATED = "SIMULATED acceptance: alpha is the one given, costs are measured";

/** The report as text: the verdict, the equation's table and, if measured, the cost table. */
export function breakEvenText(report: BreakEvenReport): string {
  const { rows, measured } = report;
  const { rowTexts, verdict } = wording(breakEven());
  const lines = verdict({ ...report, costs: measured ? undefined : report.costs })
    .map(([title, text]) => `${title.padEnd(12)}${text}`);
  return [
    ...measured ? measuredTexts(measured) : [givenText(report)],
    markdownText(cellColumns(ROW_TITLES), rows.map(rowTexts)),
    lines.join("\n"),
  ].join("\n\n") + "\n";
}

function givenText({ alpha, costs }: BreakEvenReport): string {
  return `alpha ${alpha}, draft cost c ${costs.draft}, verify cost v ${costs.verify}`;
}

function measuredTexts(measured: Measured): string[] {
  const { facts, noise, simulated, steps, plainMs } = measured;
  return [
    ...simulated ? [SIMULATED] : [],
    facts.map(([title, value]) => `${title} ${value}`).join(", "),
    fitText(measured),
    ...unsplitTexts(measured),
    `plain decoding step ${digits(plainMs)} ms; against itself ${ratioText(noise)}`,
    markdownText(COST_COLUMNS, steps),
  ];
}

/** A note for devices that cannot time the parts of a round; empty if the parts were timed. */
export function unsplitTexts({ steps }: Measured): string[] {
  if (steps.some(({ draftMs }) => draftMs > 0)) return [];
  return ["The adapter has no timestamp queries: c is 0 and v the whole round, draft and all."];
}

/** The fitted alpha, and the measured acceptance by position beside the powers of alpha. */
export function fitText({ alpha, acceptedByPosition }: Measured): string {
  const shares = (of: readonly number[]) => of.map((share) => share.toFixed(2)).join(" ");
  return `alpha ${alpha.toFixed(3)}: accepted over tested drafts of the rounds of ` +
    `${acceptedByPosition.length} steps. Accepted to position 1, 2, ...: ` +
    `${shares(acceptedByPosition)}; powers of alpha: ` +
    shares(acceptedByPosition.map((_, at) => alpha ** (at + 1)));
}

/** The columns of the table of measured costs, a row for each number of steps. */
export const COST_COLUMNS: readonly Column<MeasuredSteps>[] = [
  { ...numbers("steps K", ({ steps }) => steps), rowHeader: true },
  numbers("draft ms", ({ draftMs }) => draftMs, digits),
  numbers("verify ms", ({ verifyMs }) => verifyMs, digits),
  numbers("c", ({ draft }) => draft, places(3)),
  numbers("v", ({ verify }) => verify, places(3)),
  numbers("measured tokens a round", ({ tokens }) => tokens, places(2)),
  numbers("measured speed-up [95 %]", ({ speedup }) => speedup, ratioText),
];

/** The report as JSON. */
export function breakEvenJson({ alpha, costs, rows, measured }: BreakEvenReport): string {
  const equation = breakEven();
  const best = equation.best(rows);
  const limit = equation.limit(alpha);
  const paying = measured ? undefined : equation.paying(alpha, costs);
  const endless = (value: number | undefined) => value === Infinity ? null : value;
  const json = {
    alpha,
    draft_cost: costs.draft,
    verify_cost: costs.verify,
    limit: endless(limit),
    rows: rows.map(({ steps, tokens, cost, speedup, minAlpha }) => ({
      steps,
      tokens,
      cost,
      speedup,
      min_alpha: minAlpha,
    })),
    best_steps: best?.steps ?? 0,
    best_speedup: best?.speedup ?? 1,
    ...measured ? { measured: measuredJson(measured) } : {
      // No first: it pays nowhere; no last: it pays without end.
      paying: { first: paying?.[0] ?? null, last: endless(paying?.[1]) ?? null },
    },
  };
  return `${JSON.stringify(json, null, 2)}\n`;
}

function measuredJson(measured: Measured): Record<string, unknown> {
  const { facts, simulated, acceptedByPosition, plainMs, noise, steps } = measured;
  return {
    ...Object.fromEntries(facts.map(([name, value]) => [name.replaceAll(" ", "_"), value])),
    acceptance: simulated ? "SIMULATED" : "measured",
    accepted_by_position: acceptedByPosition,
    plain_ms: plainMs,
    noise,
    steps: steps.map((one) => ({
      steps: one.steps,
      draft_ms: one.draftMs,
      verify_ms: one.verifyMs,
      draft_cost: one.draft,
      verify_cost: one.verify,
      tokens: one.tokens,
      speedup: one.speedup,
    })),
  };
}
