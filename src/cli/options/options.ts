import type {
  BENCH_AXES,
  BENCH_OUTPUT,
  BENCH_RUN,
  BENCH_TABLE,
  OVERWRITE,
} from "./measure/bench_flags.ts";
import type { BENCH_WEBGPU } from "./measure/backend_flags.ts";
import type { LOAD_ARRIVALS, LOAD_OUTPUT, LOAD_REQUESTS, LOAD_RUN } from "./measure/load_flags.ts";
import type { BREAKEVEN, BREAKEVEN_MEASURE, BREAKEVEN_OUTPUT } from "./measure/breakeven_flags.ts";
import type { Values } from "./flag.ts";
import type { BATCH, BATCH_SIZES, CONTEXT, ROUNDS } from "./option_flight.ts";
import type { MEASURED, MODELS, OPENED } from "./option_models.ts";
import type {
  ADAPTER,
  COSTS,
  HISTORY,
  JSON_OUTPUT,
  PROMPT,
  RAW,
  SAMPLING,
  SYSTEM,
  TALK,
  TARGET,
  TEMPLATE,
} from "./option_groups.ts";
import type { CONSTRAINT } from "./option_constraint.ts";
import type { LOGPROBS, PENALTIES } from "./option_penalties.ts";
import type { SPECULATION } from "./option_speculation.ts";
import type {
  SIMULATE_ACCEPTANCE,
  SIMULATE_LOAD,
  SIMULATE_MACHINE,
  SIMULATE_OUTPUT,
  SIMULATE_RUN,
} from "./measure/simulate_flags.ts";
import type { PROFILE, PROFILE_OUTPUT } from "./measure/profile_flags.ts";
import type { REMOTE } from "./option_remote.ts";
import type { SERVE, SERVE_LOAD, SERVE_LOG } from "./option_serve.ts";
import type { SERVE_COMMAND, SERVE_COMMAND_MODEL, SERVE_CONFIG } from "./option_serve_command.ts";
import type { CHECK, CONVERT, DOCTOR, KNOWN, REMOVAL, TOKEN_MAP } from "./tool_flags.ts";

/** Values of `eyrie generate`. */
export type GenerateOptions = Values<
  & typeof OPENED
  & typeof SPECULATION
  & typeof ROUNDS
  & typeof SAMPLING
  & typeof PROMPT
  & typeof PENALTIES
  & typeof CONSTRAINT
  & typeof SYSTEM
  & typeof TEMPLATE
  & typeof RAW
  & typeof JSON_OUTPUT
  & typeof TALK
  & typeof BATCH
  & typeof BATCH_SIZES
  & typeof LOGPROBS
  & typeof REMOTE
>;

/** Values of `eyrie chat`. */
export type ChatOptions =
  & Omit<
    GenerateOptions,
    | "raw"
    | "json"
    | keyof typeof PROMPT
    | keyof typeof BATCH
    | keyof typeof BATCH_SIZES
    | keyof typeof CONSTRAINT
  >
  & Partial<Values<typeof HISTORY>>;

/** Values of a command that opens an engine, as far as that needs them. */
export type OpeningOptions = Values<
  & typeof OPENED
  & typeof SPECULATION
  & typeof ROUNDS
  & typeof TEMPLATE
  & Pick<typeof TALK, "quiet">
>;

/** Values of `eyrie serve`. */
export type ServeOptions =
  & OpeningOptions
  & Values<
    & typeof SERVE
    & typeof SERVE_LOAD
    & typeof SERVE_LOG
    & typeof BATCH_SIZES
    & Omit<typeof SAMPLING, "seed" | "stop" | "ignoreEos">
    & typeof PENALTIES
  >;

/** Values of `eyrie serve-command`. */
export type ServeCommandOptions = Values<
  & typeof SERVE_CONFIG
  & typeof SERVE_COMMAND_MODEL
  & typeof SERVE_COMMAND
  & typeof OVERWRITE
  & typeof SPECULATION
  & Pick<typeof TALK, "quiet">
>;

/** Values of `eyrie check`. */
export type CheckOptions = Values<
  & typeof MODELS
  & typeof CHECK
  & typeof ADAPTER
  & typeof JSON_OUTPUT
  & Pick<typeof TALK, "quiet">
>;

/** Values of `eyrie inspect`. */
export type InspectOptions = Values<typeof MODELS & typeof JSON_OUTPUT>;

/** Values of `eyrie convert`. */
export type ConvertOptions = Values<
  typeof CONVERT & typeof JSON_OUTPUT & Pick<typeof TALK, "quiet">
>;

/** Values of the models that `bench` and `breakeven` measure. */
export type MeasuredOptions = Values<typeof MEASURED>;

/** Values of `eyrie bench`. */
export type BenchOptions =
  & Omit<MeasuredOptions, "webgpu">
  & Values<
    & typeof BENCH_WEBGPU
    & typeof BENCH_AXES
    & typeof BENCH_RUN
    & typeof BENCH_TABLE
    & typeof BENCH_OUTPUT
    & typeof OVERWRITE
    & typeof COSTS
    & Pick<typeof TALK, "quiet">
  >;

/** Values of `eyrie profile`. */
export type ProfileOptions =
  & Omit<MeasuredOptions, "simulateAcceptance">
  & Values<
    & typeof PROFILE
    & typeof PROFILE_OUTPUT
    & typeof OVERWRITE
    & typeof JSON_OUTPUT
    & Pick<typeof TALK, "quiet">
  >;

/** Values of `eyrie bench load`. */
export type LoadOptions =
  & MeasuredOptions
  & Values<
    & typeof LOAD_ARRIVALS
    & typeof LOAD_REQUESTS
    & typeof LOAD_RUN
    & typeof BATCH_SIZES
    & typeof ROUNDS
    & typeof CONTEXT
    & typeof COSTS
    & typeof REMOTE
    & Pick<typeof BENCH_RUN, "workload" | "seed">
    & typeof LOAD_OUTPUT
    & typeof OVERWRITE
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
    & typeof COSTS
    & typeof OVERWRITE
    & Pick<typeof TALK, "quiet">
  >;

/** Values of `eyrie simulate`. */
export type SimulateOptions = Values<
  & typeof SIMULATE_RUN
  & typeof SIMULATE_LOAD
  & typeof SIMULATE_ACCEPTANCE
  & typeof SIMULATE_MACHINE
  & typeof SIMULATE_OUTPUT
  & typeof OVERWRITE
  & Pick<typeof TALK, "quiet">
>;

/** Values of `eyrie token-map`. */
export type TokenMapOptions = Values<
  typeof TARGET & typeof TOKEN_MAP & typeof OVERWRITE & Pick<typeof TALK, "quiet">
>;

/** Values of `eyrie doctor`. */
export type DoctorOptions = Values<
  typeof DOCTOR & Pick<typeof ADAPTER, "webgpu"> & typeof JSON_OUTPUT
>;

/** Values of `eyrie pull`. */
export type PullOptions = Values<Pick<typeof TALK, "quiet">>;

/** Values of `eyrie models`. */
export type ModelsOptions = Values<typeof KNOWN & typeof JSON_OUTPUT>;

/** Values of `eyrie rm`. */
export type RemoveOptions = Values<typeof REMOVAL>;
