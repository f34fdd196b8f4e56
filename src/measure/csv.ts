// @ts-types="npm:@types/d3-dsv@3.0.7"
import { csvFormat } from "d3-dsv";

/**
 * Rows as CSV: one header line, then a line for each row. Nested fields are flat: `ttft_ms: {p50: 3}` is `ttft_ms_p50:
 * 3`, and the list `[1, 2]` is `1 2`.
 */
export function csvText(rows: readonly object[]): string {
  const flat = rows.map((row) =>
    Object.fromEntries(Object.entries(row).flatMap(([name, value]) => cells(name, value)))
  );
  return `${csvFormat(flat)}\n`;
}

/** All numbers of rows that begin with a `format`; the names of the columns are those of the JSON rows. */
export function rowsCsv(rows: readonly { readonly format: string }[]): string {
  return csvText(rows.map(({ format: _, ...row }) => row));
}

function cells(name: string, value: unknown): [string, unknown][] {
  if (Array.isArray(value)) return [[name, value.join(" ")]];
  if (typeof value !== "object" || value === null) return [[name, value]];
  return Object.entries(value).flatMap(([part, inner]) => cells(`${name}_${part}`, inner));
}
