import { BENCH_RANDOM } from "./measure/bench_flags.ts";
import { CACHE, CONTEXT } from "./option_flight.ts";
import {
  ADAPTER,
  AUTOTUNE,
  COSTS,
  DONOR,
  DRAFT,
  KV,
  QUANTIZE,
  QUANTIZE_DRAFT,
  TARGET,
} from "./option_groups.ts";
import { DRAFT_MODEL } from "./option_speculation.ts";

/** The models of a command, and in which types they are kept. */
export const MODELS:
  & typeof TARGET
  & typeof DONOR
  & typeof DRAFT
  & typeof QUANTIZE
  & typeof QUANTIZE_DRAFT
  & typeof KV = { ...TARGET, ...DONOR, ...DRAFT, ...QUANTIZE, ...QUANTIZE_DRAFT, ...KV };

/** Model flags of a command that answers, and those for opening an engine. */
export const OPENED:
  & typeof MODELS
  & typeof ADAPTER
  & typeof AUTOTUNE
  & typeof COSTS
  & typeof CONTEXT
  & typeof CACHE = { ...MODELS, ...ADAPTER, ...AUTOTUNE, ...COSTS, ...CONTEXT, ...CACHE };

/** Model flags of a command that measures. */
export const MEASURED:
  & Omit<typeof MODELS, keyof typeof BENCH_RANDOM>
  & typeof DRAFT_MODEL
  & typeof ADAPTER
  & typeof AUTOTUNE
  & typeof BENCH_RANDOM = {
    ...MODELS,
    ...DRAFT_MODEL,
    ...ADAPTER,
    ...AUTOTUNE,
    ...BENCH_RANDOM,
  };
