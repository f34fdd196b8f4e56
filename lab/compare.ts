import { markdownTable } from "markdown-table";
import { digits, ratioText } from "../src/measure/formats.ts";
import { median, medianRatio, type Ratio } from "../src/measure/statistics.ts";
import type { Measured } from "./measure.ts";

/** The times of one case in every block, from both checkouts. */
export interface Pairs {
  readonly name: string;
  readonly here: readonly Measured[];
  /** As many as in `here`; empty if nothing is compared. */
  readonly there: readonly Measured[];
}

/** The median over blocks of time there over time here. Above 1, this checkout is faster. */
export function speedup({ here, there }: Pairs): Ratio {
  return medianRatio(here.map(({ us }, i) => Math.log((there[i]?.us ?? NaN) / us)));
}

/** Whether this side is measured first. The sides take turns, so that a drift affects both alike. */
export function hereFirst(block: number): boolean {
  return block % 2 === 0;
}

/** Cases whose name contains one of the texts; all cases if there are no texts. */
export function matching(cases: readonly string[], texts: readonly string[]): string[] {
  return cases.filter((name) => texts.length === 0 || texts.some((text) => name.includes(text)));
}

/** The first part of each name, once: `matmul/`. */
export function groupsOf(cases: readonly string[]): string[] {
  return [...new Set(cases.map((name) => name.replace(/\/.*/, "/")))];
}

function medianUs(runs: readonly Measured[]): number {
  return median(runs.map(({ us }) => us));
}

/** `against` is the name of the other side; undefined if there is none. */
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
