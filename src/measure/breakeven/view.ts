import type { BreakEven } from "../../speculate/break_even.ts";
import type { ChartPoint, ChartSpec } from "./chart.ts";
import type { Wording } from "./wording.ts";

/** The values of the sliders. */
export interface Sliders {
  readonly alpha: number;
  readonly steps: number;
  readonly draft: number;
  readonly verify: number;
}

/** The functions and data that the view draws from. */
export interface ViewParts {
  readonly equation: BreakEven;
  readonly wording: Wording;
  readonly chart: (spec: ChartSpec) => string;
  /** The last number of steps of the curve, which begins at 1. */
  readonly most: number;
  /** Measured speed-ups by number of steps. */
  readonly measured: readonly ChartPoint[];
}

/** Maps the sliders to the inner HTML of the page's elements, by their ids. */
export type View = (sliders: Sliders) => Readonly<Record<string, string>>;

/** The view of these parts. The function uses nothing but its argument, because its source is written into the page. */
export function viewOf({ equation, wording, chart, most, measured }: ViewParts): View {
  // Pixels, by the class that the style shows on a screen or on a phone.
  const WIDTHS = [["on-screen", 540], ["on-phone", 360]] as const;
  const drawn = (spec: Omit<ChartSpec, "width">) =>
    WIDTHS.map(([kind, width]) => `<div class="${kind}">${chart({ ...spec, width })}</div>`).join(
      "",
    );

  function bySteps({ alpha, steps, ...costs }: Sliders): string {
    const { row, paying } = equation;
    const line = Array.from(
      { length: most },
      (_, at) => [at + 1, row(alpha, at + 1, costs).speedup] as const,
    );
    const [start, end] = paying(alpha, costs) ?? [Infinity, Infinity];
    const stops: [number, string][] = [];
    if (start > 1 && start <= most) stops.push([start - 0.5, "pays from here"]);
    if (end < most) stops.push([end + 0.5, "stops paying"]);
    const now = row(alpha, steps, costs).speedup;
    return drawn({
      name: `Speed-up by steps; at K ${steps}: ${now.toFixed(2)}`,
      label: "steps K",
      ends: [0.5, most + 0.5],
      ticks: line.map(([x]) => x).filter((x) => x === 1 || x % (most > 24 ? 8 : 4) === 0),
      line,
      dots: true,
      now: [steps, now],
      stops,
      measured,
    });
  }

  function byAlpha({ alpha, steps, ...costs }: Sliders): string {
    const speedup = (alpha: number) => equation.row(alpha, steps, costs).speedup;
    const { minAlpha } = equation.row(alpha, steps, costs);
    return drawn({
      name: `Speed-up by alpha at K ${steps}; at alpha ${alpha}: ${speedup(alpha).toFixed(2)}`,
      label: `alpha, at ${steps} ${steps === 1 ? "step" : "steps"}`,
      ends: [0, 1],
      ticks: [0, 0.2, 0.4, 0.6, 0.8, 1],
      line: Array.from({ length: 51 }, (_, at) => [at / 50, speedup(at / 50)] as const),
      dots: false,
      now: [alpha, speedup(alpha)],
      stops: minAlpha === null || minAlpha === 0 ? [] : [[minAlpha, "stops paying"]],
      measured: [],
    });
  }

  return (sliders) => {
    const { alpha, steps, draft, verify } = sliders;
    const costs = { draft, verify };
    const now = equation.row(alpha, steps, costs);
    const rows = Array.from({ length: most }, (_, at) => equation.row(alpha, at + 1, costs));
    const best = equation.best(rows);
    const cells = (texts: readonly string[]) =>
      texts.map((text, at) =>
        at === 0 ? `<th scope="row" class="right">${text}</th>` : `<td class="right">${text}</td>`
      ).join("");
    return {
      result: `S = n / (K c + v) = ${now.tokens.toFixed(4)} / ${now.cost.toFixed(3)} = ` +
        `<b>${now.speedup.toFixed(2)}x</b> plain decoding`,
      verdict: wording.verdict({ alpha, rows, costs })
        .map(([title, text]) => `<dt class="line">${title}</dt><dd>${text}</dd>`).join(""),
      "by-steps": bySteps(sliders),
      "by-alpha": byAlpha(sliders),
      rows: rows.map((row) =>
        `<tr${row === best ? ' class="best"' : ""}>${cells(wording.rowTexts(row))}</tr>`
      ).join(""),
    };
  };
}
