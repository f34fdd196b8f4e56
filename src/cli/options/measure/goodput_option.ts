import { decimal } from "../decimal.ts";

/** The most milliseconds of a request that counts as goodput; undefined: any. */
export interface Goodput {
  readonly ttftMs?: number;
  readonly tpotMs?: number;
}

/** Limits as `--goodput` takes them, vLLM's `ttft:MS` and `tpot:MS` with a comma between. */
export function goodputOf(text: string | undefined): Goodput | undefined {
  const limits: { ttftMs?: number; tpotMs?: number } = {};
  for (const part of text?.split(",") ?? [""]) {
    const [, key, value = ""] = /^(ttft|tpot):(.+)$/.exec(part.trim()) ?? [];
    const ms = decimal(value);
    if (key === undefined || !(ms > 0)) return undefined;
    limits[`${key as "ttft" | "tpot"}Ms`] = ms;
  }
  return limits;
}
