// @ts-types="npm:@types/d3-dsv@3.0.7"
import { csvFormat } from "d3-dsv";
import type { BenchRow } from "./row.ts";

/** All numbers of the rows, flat, one header line; the names are those of the JSON rows. */
export function csv(rows: readonly BenchRow[]): string {
  return `${csvFormat(rows.map(flat))}\n`;
}

const NO_GAP = { ratio: null, low: null, high: null, best: null };

/** `ttft_ms: {p50: 3}` becomes `ttft_ms_p50: 3`, `[1, 2]` becomes `1 2`. */
function flat(row: BenchRow): Record<string, unknown> {
  const { format: _format, switch_log: _log, timeline: _timeline, tier_share, ...rest } = row;
  const fields: Record<string, unknown> = {
    ...rest,
    gap_to_best_static: row.gap_to_best_static ?? NO_GAP,
    tier_share: Object.entries(tier_share).map(([tier, share]) => `${tier}:${share}`),
  };
  return Object.fromEntries(Object.entries(fields).flatMap(([name, value]) => cells(name, value)));
}

function cells(name: string, value: unknown): [string, unknown][] {
  if (Array.isArray(value)) return [[name, value.join(" ")]];
  if (typeof value !== "object" || value === null) return [[name, value]];
  return Object.entries(value).flatMap(([part, inner]) => cells(`${name}_${part}`, inner));
}
