import { stringify } from "csv-stringify/sync";
import type { BenchRow } from "./row.ts";

/** For lists whose length differs from row to row. */
const joined = (values: readonly unknown[]): string => values.join(" ");

/** All numbers of the rows, flat, one header line; the names are those of the JSON rows. */
export function csv(rows: readonly BenchRow[]): string {
  return stringify(rows.map(flat), { header: true });
}

function flat(row: BenchRow): Record<string, unknown> {
  const { format: _, switch_log: __, timeline: ___, ...rest } = row;
  return {
    ...rest,
    ...prefixed("tokens_per_second", row.tokens_per_second),
    ...prefixed("speedup", row.speedup),
    acceptance_per_position: joined(row.acceptance_per_position),
    ...prefixed("round_ms", row.round_ms),
    ...prefixed("ttft_ms", row.ttft_ms),
    ...prefixed("tpot_ms", row.tpot_ms),
    ...prefixed("itl_ms", row.itl_ms),
    tier_share: joined(Object.entries(row.tier_share).map(([tier, part]) => `${tier}:${part}`)),
    ...prefixed(
      "gap_to_best_static",
      row.gap_to_best_static ?? { ratio: null, low: null, high: null, best: null },
    ),
  };
}

/** `{ttft_ms: undefined, ttft_ms_p50: ..., ...}`: stringify leaves no column for the undefined one. */
function prefixed(name: string, parts: object): Record<string, unknown> {
  const flatParts = Object.entries(parts).map(([part, value]) => [
    `${name}_${part}`,
    Array.isArray(value) ? joined(value) : value,
  ]);
  return Object.fromEntries(flatParts);
}
