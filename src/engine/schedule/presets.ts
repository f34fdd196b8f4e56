import aggressive from "../../../presets/aggressive.json" with { type: "json" };
import conservative from "../../../presets/conservative.json" with { type: "json" };
import { reason, UsageError } from "../../errors.ts";
import { PolicyError } from "../../speculate/policy.ts";

/** Adaptive configs that come with the program: the files of presets/, by name. */
const PRESETS: Readonly<Record<string, unknown>> = { conservative, aggressive };

/** The config of the policy `ema` where none is given. */
export const DEFAULT_PRESET = "conservative";

export const PRESET_NAMES: readonly string[] = Object.keys(PRESETS);

/**
 * The adaptive config of a preset, or of a file in SGLang's format, unchecked.
 *
 * @throws UsageError when it is neither, or not JSON.
 */
export function presetJson(nameOrFile: string): unknown {
  return Object.hasOwn(PRESETS, nameOrFile) ? PRESETS[nameOrFile] : readJson(nameOrFile);
}

/** Runs `action` and turns its PolicyError, a fault in the user's config or options, into a UsageError. */
export function asUsageError<T>(action: () => T, prefix = ""): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    throw new UsageError(prefix + error.message, { cause: error });
  }
}

function readJson(file: string): unknown {
  let text: string;
  try {
    text = Deno.readTextFileSync(file);
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound
      ? `there is no such file; presets are ${PRESET_NAMES.join(", ")}`
      : reason(error);
    throw new UsageError(`Cannot read adaptive config "${file}": ${why}`, { cause: error });
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new UsageError(`Cannot read adaptive config "${file}": ${reason(error)}`, {
      cause: error,
    });
  }
}
