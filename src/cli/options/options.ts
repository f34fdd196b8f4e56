import type {
  BENCH_AXES,
  BENCH_OUTPUT,
  BENCH_PROFILE,
  BENCH_RANDOM,
  BENCH_RUN,
} from "./bench_flags.ts";
import type { BREAKEVEN, BREAKEVEN_MEASURE, BREAKEVEN_OUTPUT } from "./breakeven_flags.ts";
import type { Values } from "./flag.ts";
import type { BATCH, CACHE, CONTEXT, ROUNDS } from "./option_flight.ts";
import type {
  ADAPTER,
  AUTOTUNE,
  DRAFT,
  HISTORY,
  JSON_OUTPUT,
  KV,
  PROMPT,
  QUANTIZE,
  QUANTIZE_DRAFT,
  RAW,
  SAMPLING,
  SYSTEM,
  TALK,
  TARGET,
  TEMPLATE,
} from "./option_groups.ts";
import type { CONSTRAINT } from "./option_constraint.ts";
import type { LOGPROBS, PENALTIES } from "./option_penalties.ts";
import type { DRAFT_ALGORITHM, SPECULATION } from "./option_speculation.ts";
import type { SERVE, SERVE_LOAD } from "./option_serve.ts";
import type { CHECK, CONVERT, DOCTOR, REMOVAL, TOKEN_MAP } from "./tool_flags.ts";

/** Values of `eyrie generate`. */
export type GenerateOptions = Values<
  & typeof TARGET
  & typeof DRAFT
  & typeof QUANTIZE
  & typeof KV
  & typeof QUANTIZE_DRAFT
  & typeof ADAPTER
  & typeof AUTOTUNE
  & typeof SPECULATION
  & typeof ROUNDS
  & typeof SAMPLING
  & Pick<typeof PROMPT, "promptFile">
  & typeof PENALTIES
  & typeof CONSTRAINT
  & typeof SYSTEM
  & typeof TEMPLATE
  & typeof RAW
  & typeof JSON_OUTPUT
  & typeof TALK
  & typeof CONTEXT
  & typeof CACHE
  & typeof BATCH
  & typeof LOGPROBS
>;

/** Values of `eyrie chat`. */
export type ChatOptions =
  & Omit<
    GenerateOptions,
    "raw" | "json" | keyof typeof PROMPT | keyof typeof BATCH | keyof typeof CONSTRAINT
  >
  & Partial<Values<typeof HISTORY>>;

/** Values of a command that opens an engine, as far as that needs them. */
export type OpeningOptions = Values<
  & typeof TARGET
  & typeof DRAFT
  & typeof QUANTIZE
  & typeof KV
  & typeof QUANTIZE_DRAFT
  & typeof ADAPTER
  & typeof AUTOTUNE
  & typeof SPECULATION
  & typeof ROUNDS
  & typeof TEMPLATE
  & typeof CONTEXT
  & typeof CACHE
  & Pick<typeof TALK, "quiet">
>;

/** Values of `eyrie serve`. */
export type ServeOptions =
  & OpeningOptions
  & Values<
    & typeof SERVE
    & typeof SERVE_LOAD
    & Pick<typeof BATCH, "maxKvTokens">
    & Omit<typeof SAMPLING, "seed" | "stop" | "ignoreEos">
    & typeof PENALTIES
  >;

/** Values of `eyrie check`. */
export type CheckOptions = Values<
  & typeof TARGET
  & typeof DRAFT
  & typeof QUANTIZE
  & typeof QUANTIZE_DRAFT
  & typeof KV
  & typeof CHECK
  & typeof ADAPTER
  & typeof JSON_OUTPUT
  & Pick<typeof TALK, "quiet">
>;

/** Values of `eyrie inspect`. */
export type InspectOptions = Values<
  & typeof TARGET
  & typeof DRAFT
  & typeof QUANTIZE
  & typeof KV
  & typeof QUANTIZE_DRAFT
  & typeof JSON_OUTPUT
>;

/** Values of `eyrie convert`. */
export type ConvertOptions = Values<
  typeof CONVERT & typeof JSON_OUTPUT & Pick<typeof TALK, "quiet">
>;

/** Values of the models that `bench` and `breakeven` measure. */
export type MeasuredOptions = Values<
  & typeof TARGET
  & typeof DRAFT
  & typeof QUANTIZE
  & typeof KV
  & typeof QUANTIZE_DRAFT
  & typeof ADAPTER
  & typeof AUTOTUNE
  & typeof BENCH_RANDOM
  & typeof DRAFT_ALGORITHM
>;

/** Values of `eyrie bench`. */
export type BenchOptions =
  & MeasuredOptions
  & Values<
    & typeof BENCH_AXES
    & typeof BENCH_RUN
    & typeof BENCH_PROFILE
    & typeof BENCH_OUTPUT
    & Pick<typeof TALK, "quiet">
  >;

/** Values of `eyrie breakeven`. */
export type BreakevenOptions =
  & MeasuredOptions
  & Values<
    & typeof BREAKEVEN
    & typeof BREAKEVEN_MEASURE
    & Pick<typeof BENCH_RUN, "workload" | "seed">
    & typeof BREAKEVEN_OUTPUT
    & Pick<typeof BENCH_OUTPUT, "outputFile">
    & typeof JSON_OUTPUT
    & Pick<typeof TALK, "quiet">
  >;

/** Values of `eyrie token-map`. */
export type TokenMapOptions = Values<typeof TARGET & typeof TOKEN_MAP & Pick<typeof TALK, "quiet">>;

/** Values of `eyrie doctor`. */
export type DoctorOptions = Values<typeof DOCTOR & typeof JSON_OUTPUT>;

/** Values of `eyrie pull`. */
export type PullOptions = Values<Pick<typeof TALK, "quiet">>;

/** Values of `eyrie models`. */
export type ModelsOptions = Values<typeof JSON_OUTPUT>;

/** Values of `eyrie rm`. */
export type RemoveOptions = Values<typeof REMOVAL>;
