import type { BreakEven, BreakEvenRow, RoundCosts } from "../../speculate/break_even.ts";

/** Titles of the columns of `rowTexts`. */
export const ROW_TITLES = [
  "steps K",
  "tokens a round n",
  "round K c + v",
  "speed-up S",
  "pays from alpha",
] as const;

/** The texts of the equation's results, the same for terminal and page. */
export interface Wording {
  rowTexts(row: BreakEvenRow): string[];
  /** The best number of steps and the limits within which drafting pays, as titles and texts. */
  verdict(of: {
    readonly alpha: number;
    readonly rows: readonly BreakEvenRow[];
    /** Undefined if each number of steps has costs of its own. */
    readonly costs: RoundCosts | undefined;
  }): [title: string, text: string][];
}

/**
 * The texts for an equation. The function uses nothing but its argument, because its source is written into the page.
 */
export function wording(equation: BreakEven): Wording {
  const alphaText = (alpha: number) => alpha.toFixed(3);

  function payingText({ alpha, rows, costs }: Parameters<Wording["verdict"]>[0]): string {
    if (costs === undefined) {
      const paying = rows.filter(({ speedup }) => speedup > 1).map(({ steps }) => steps);
      const others = rows.filter(({ speedup }) => speedup <= 1).map(({ steps }) => steps);
      if (paying.length === 0) return "pays at none of the measured";
      return `pays at ${paying.join(", ")}${
        others.length === 0 ? "" : `, not at ${others.join(", ")}`
      }`;
    }
    const [first, last] = equation.paying(alpha, costs) ?? [];
    if (first === undefined) return "pays at none";
    return `pays from ${first} ${last === Infinity ? "on, without end" : `to ${last}`}`;
  }

  return {
    rowTexts: ({ steps, tokens, cost, speedup, minAlpha }) => [
      String(steps),
      tokens.toFixed(4),
      cost.toFixed(3),
      `${speedup.toFixed(2)}x`,
      minAlpha === null ? "never" : alphaText(minAlpha),
    ],
    verdict({ alpha, rows, costs }) {
      const best = equation.best(rows);
      const least = rows.flatMap(({ minAlpha }) => minAlpha ?? []);
      const most = costs === undefined
        ? 0
        : Math.max(...rows.map(({ steps }) => equation.maxDraftCost(alpha, steps, costs.verify)));
      const limit = equation.limit(alpha);
      return [
        [
          "best",
          best === undefined
            ? "0 steps: plain decoding"
            : `${best.steps} ${best.steps === 1 ? "step" : "steps"}, ` +
              `${best.speedup.toFixed(2)} times as fast as plain decoding`,
        ],
        ["steps", payingText({ alpha, rows, costs })],
        ["alpha", least.length === 0 ? "pays never" : `pays from ${alphaText(Math.min(...least))}`],
        ...most > 0 ? [["draft cost", `pays below ${most.toFixed(3)}`] as [string, string]] : [],
        [
          "limit",
          limit === Infinity ? "none" : `${limit.toFixed(4)} tokens a round, however many steps`,
        ],
      ];
    },
  };
}
