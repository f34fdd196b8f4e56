import { markdownTable } from "markdown-table";
import { digits, ratioText } from "../src/bench/columns.ts";
import { median } from "../src/bench/profile.ts";
import { pairedRatio, type Ratio } from "../src/bench/statistics.ts";
import type { CaseInfo } from "./serve.ts";

/** Microseconds of one case in each block, on both sides. */
export interface Pairs {
  readonly one: CaseInfo;
  readonly here: readonly number[];
  /** As many as here; none where nothing is compared. */
  readonly there: readonly number[];
}

/** Time there over time here: above 1 this checkout is faster. Paired block by block. */
export function speedup({ here, there }: Pairs): Ratio {
  return pairedRatio(here.map((us, i) => Math.log((there[i] ?? NaN) / us)));
}

/** Which side is measured first: they take turns, so that a drift hits both alike. */
export function hereFirst(block: number): boolean {
  return block % 2 === 0;
}

/** Cases whose name contains one of the texts; all where there are none. */
export function matching(cases: readonly CaseInfo[], texts: readonly string[]): CaseInfo[] {
  return cases.filter(({ name }) =>
    texts.length === 0 || texts.some((text) => name.includes(text))
  );
}

export function table(rows: readonly Pairs[], against: string | undefined): string {
  const compared = against === undefined ? [] : [`us ${against}`, "speed-up [95 %]"];
  const heads = ["case", "us", ...compared, "GB/s", "GFLOP/s"];
  const cells = rows.map((row) => {
    const us = median(row.here);
    return [
      row.one.name,
      us.toFixed(1),
      ...against === undefined ? [] : [median(row.there).toFixed(1), ratioText(speedup(row))],
      digits(row.one.bytes / us / 1e3),
      digits(row.one.flops / us / 1e3),
    ];
  });
  return markdownTable([heads, ...cells], { align: ["l", ...Array(heads.length - 1).fill("r")] });
}
