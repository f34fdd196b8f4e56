import { decimal } from "./decimal.ts";
import { REQUEST_RANGES } from "../../speculate/request_ranges.ts";

/** Values by token id, as `--logit-bias` and lines of a batch have them. */
export type LogitBias = Readonly<Record<number, number>>;

/** Largest value either way. */
export const MAX_BIAS: number = REQUEST_RANGES.logitBias.max;

/** ID=VALUE, or a JSON object of them; undefined where it is neither. */
export function parseBias(text: string): LogitBias | undefined {
  const [, id, value] = /^(\d+)=(.+)$/.exec(text) ?? [];
  if (id !== undefined && value !== undefined) return biasOf({ [id]: decimal(value) });
  try {
    return biasOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The object with its keys as numbers; undefined where a key is no id or a value is out of range. */
export function biasOf(value: unknown): LogitBias | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const fits = ([id, bias]: [string, unknown]) =>
    /^\d{1,9}$/.test(id) && typeof bias === "number" && Math.abs(bias) <= MAX_BIAS;
  return Object.entries(value).every(fits) ? value as LogitBias : undefined;
}
