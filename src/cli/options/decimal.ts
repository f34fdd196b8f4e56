/** Number() alone would take "", "0x10" and "Infinity". */
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** A number as people write it; NaN for other text. */
export function decimal(text: string): number {
  return DECIMAL.test(text) ? Number(text) + 0 : NaN; // -0 becomes 0
}
