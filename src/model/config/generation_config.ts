import { isObject } from "../../objects.ts";
import { inRange, REQUEST_RANGES } from "../../speculate/request_ranges.ts";
import { quote } from "../files/fields.ts";

/** The sampling settings that the authors of a checkpoint recommend: only what generation_config.json says. */
export interface GenerationDefaults {
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
  readonly repetitionPenalty?: number;
}

/** A field of the file: its name here and what it may be. */
const FIELDS = {
  temperature: {
    key: "temperature",
    allowed: (n: number) => inRange(n, REQUEST_RANGES.temperature),
  },
  // vLLM and llama.cpp write -1 for all.
  top_k: {
    key: "topK",
    allowed: (n: number) => Number.isInteger(n) && n >= -1 && n <= REQUEST_RANGES.topK.max,
  },
  top_p: { key: "topP", allowed: (n: number) => inRange(n, REQUEST_RANGES.topP) },
  min_p: { key: "minP", allowed: (n: number) => inRange(n, REQUEST_RANGES.minP) },
  repetition_penalty: {
    key: "repetitionPenalty",
    allowed: (n: number) => inRange(n, REQUEST_RANGES.repetitionPenalty),
  },
} as const;

/**
 * Reads generation_config.json as vLLM does: the caller chooses what is absent or null, except that the
 * temperature is 1 if the file has other sampling settings but no temperature. `do_sample: false` is
 * temperature 0. An unusable value is dropped with a warning, because it is only a default.
 * @param json the parsed file, undefined where there is none.
 */
export function generationDefaults(
  json: unknown,
  onWarning: (line: string) => void = () => {},
): GenerationDefaults {
  if (!isObject(json)) return {};
  const found: Record<string, number> = {};
  for (const [field, { key, allowed }] of Object.entries(FIELDS)) {
    const value = json[field] ?? undefined;
    if (value === undefined) continue;
    if (typeof value === "number" && allowed(value)) found[key] = Math.max(0, value);
    else onWarning(`generation_config.json has ${field} ${quote(value)}; it is not used`);
  }
  if (json.do_sample === false) return { ...found, temperature: 0 };
  const samples = json.do_sample === true ||
    ["topK", "topP", "minP"].some((key) => found[key] !== undefined);
  return samples ? { temperature: 1, ...found } : found;
}

/** Returns `temperature 0.6, top_p 0.95`; undefined if it has no settings. */
export function generationText(defaults: GenerationDefaults): string | undefined {
  const parts = Object.entries(FIELDS).flatMap(([field, { key }]) =>
    defaults[key] === undefined ? [] : [`${field} ${defaults[key]}`]
  );
  return parts.length === 0 ? undefined : parts.join(", ");
}
