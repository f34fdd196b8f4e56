import { decimal } from "../decimal.ts";

/** A trace of requests, and by what its times and lengths are multiplied. */
export interface TraceChoice {
  readonly path: string;
  /** Seconds of the run for each second of the trace. */
  readonly timeScale: number;
  /** Tokens of the run for each token of the trace. */
  readonly lengthScale: number;
}

const KEYS = { time: "timeScale", length: "lengthScale" } as const;
type Key = keyof typeof KEYS;

/**
 * A trace as `--trace` takes it: `FILE`, or `FILE:time=S,length=S` with factors above 0. Undefined for
 * anything else.
 *
 * @param keys factors that are allowed.
 */
export function traceOf(text: string, keys: readonly Key[]): TraceChoice | undefined {
  const [, path = text, factors] = /^(.+?):((?:time|length)=.*)$/.exec(text) ?? [];
  const scales = { timeScale: 1, lengthScale: 1 };
  if (/^(time|length)=/.test(path)) return undefined;
  for (const part of factors?.split(",") ?? []) {
    const [, key, value = ""] = /^(time|length)=(.+)$/.exec(part.trim()) ?? [];
    const factor = decimal(value);
    if (!keys.includes(key as Key) || !(factor > 0)) return undefined;
    scales[KEYS[key as Key]] = factor;
  }
  return { path, timeScale: scales.timeScale, lengthScale: scales.lengthScale };
}
