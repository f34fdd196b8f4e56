import { markdownTable } from "markdown-table";
import { digits, ratioText } from "../src/measure/formats.ts";
import { median, medianRatio, type Ratio } from "../src/measure/statistics.ts";
import type { Measured } from "./measure.ts";

/** One case in each block, on both sides. */
export interface Pairs {
  readonly name: string;
  readonly here: readonly Measured[];
  /** As many as here; none where nothing is compared. */
  readonly there: readonly Measured[];
}

/** Time there over time here: above 1 this checkout is faster. The median over blocks. */
export function speedup({ here, there }: Pairs): Ratio {
  return medianRatio(here.map(({ us }, i) => Math.log((there[i]?.us ?? NaN) / us)));
}

/** Which side is measured first: they take turns, so that a drift hits both alike. */
export function hereFirst(block: number): boolean {
  return block % 2 === 0;
}

/** Cases whose name contains one of the texts; all where there are none. */
export function matching(cases: readonly string[], texts: readonly string[]): string[] {
  return cases.filter((name) => texts.length === 0 || texts.some((text) => name.includes(text)));
}

function medianUs(runs: readonly Measured[]): number {
  return median(runs.map(({ us }) => us));
}

/** `against` is what the other side is called; undefined where there is none. */
export function table(rows: readonly Pairs[], against: string | undefined): string {
  const compared = against === undefined ? [] : [`us ${against}`, "speed-up [95 %]"];
  const heads = ["case", "us", ...compared, "GB/s", "GFLOP/s"];
  const cells = rows.map((row) => {
    const us = medianUs(row.here);
    const { bytes, flops } = row.here[0] ?? { bytes: NaN, flops: NaN };
    return [
      row.name,
      us.toFixed(1),
      ...against === undefined ? [] : [medianUs(row.there).toFixed(1), ratioText(speedup(row))],
      digits(bytes / us / 1e3),
      digits(flops / us / 1e3),
    ];
  });
  return markdownTable([heads, ...cells], { align: ["l", ...Array(heads.length - 1).fill("r")] });
}
