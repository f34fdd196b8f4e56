import { isObject } from "../objects.ts";
import {
  AdaptiveConfigError,
  ascending,
  candidates,
  type Json,
  type NumberFields,
  NUMBERS,
  numbers,
  shown,
  trees,
} from "./adaptive_fields.ts";
import { chain, distinctTiers, type DraftShape } from "./round_shape.ts";

/** One batch-size entry of SGLang's `--speculative-adaptive-config`, global keys merged in. */
export interface AdaptiveSlot extends NumberFields {
  /** The entry's key: the smallest batch that it is for. */
  readonly batchSize: number;
  /** `candidate_steps`, ascending and distinct: the num_steps to choose from. */
  readonly candidateSteps: readonly number[];
  /**
   * `candidate_trees` (ours, not SGLang's): tiers that are trees, each as [steps, topk, rows]. Their
   * steps are candidates too.
   */
  readonly candidateTrees: readonly DraftShape[];
  /**
   * From a flat file, the first format (PR #21599): the initial steps join the candidates, and a
   * decision that went down may go up again.
   */
  readonly flat: boolean;
}

/** A checked config: at least one bracket (a "slot" of SGLang's file), ascending by batch size. */
export interface AdaptiveConfig {
  readonly slots: readonly AdaptiveSlot[];
}

const SLOT_KEYS = ["candidate_steps", "candidate_trees", ...Object.keys(NUMBERS)];
/** The ceiling was added with the batch-size entries (PR #24055). */
const FLAT_KEYS = SLOT_KEYS.filter((key) => key !== "ceiling_coeff" && key !== "candidate_trees");
/** Read by SGLang's other strategy only (PR #28045); "ema" ignores them there as here. */
const THROUGHPUT_KEYS = [
  "window_size",
  "switch_hysteresis",
  "profile_run_batch_sizes",
  "max_profile_run_batch_size",
  "profile_run_n_warmup",
  "profile_run_n_measure",
  "profile_run_seq_len",
];
const GLOBAL_KEYS = [...Object.keys(NUMBERS), "strategy", ...THROUGHPUT_KEYS];

/**
 * Checks a parsed `--speculative-adaptive-config` of any of SGLang's formats: flat (PR #21599, with
 * `candidate_steps` at the top), or entries by batch size (PR #24055; later with 0 as a candidate
 * and a `strategy`).
 *
 * @throws AdaptiveConfigError
 */
export function parseAdaptiveConfig(json: unknown): AdaptiveConfig {
  if (!isObject(json)) {
    throw new AdaptiveConfigError(`it must be a JSON object, got ${shown(json)}`);
  }
  const keys = Object.keys(json).filter(isBatchSize);
  if (keys.length === 0 && Object.hasOwn(json, "candidate_steps")) return flatConfig(json);
  checkStrategy(json);
  if (keys.length === 0) {
    throw new AdaptiveConfigError(
      'it needs a batch size as a key, as in {"1": {"candidate_steps": [1, 3, 7]}}; ' +
        `its keys are ${shown(Object.keys(json))}`,
    );
  }
  const rest = Object.entries(json).filter(([key]) => !isBatchSize(key));
  const globals: Json = Object.fromEntries(rest);
  if (Object.hasOwn(globals, "candidate_steps")) {
    // SGLang drops it without a word.
    throw new AdaptiveConfigError(
      "candidate_steps has no effect next to batch sizes, which have their own",
    );
  }
  checkKeys(globals, GLOBAL_KEYS, "");
  const slots = keys.map((key) => batchSlot(key, globals, json[key]));
  return freeze(slots.toSorted((a, b) => a.batchSize - b.batchSize));
}

/** The num_steps of all brackets together, ascending: the tiers to build. */
export function unionSteps({ slots }: AdaptiveConfig): readonly number[] {
  return ascending(slots.flatMap(({ candidateSteps }) => candidateSteps));
}

/** The tiers of all brackets together, ascending. */
export function unionTiers({ slots }: AdaptiveConfig): readonly DraftShape[] {
  return distinctTiers(
    slots.flatMap((slot) => slot.candidateSteps.map((steps) => tierOf(slot, steps))),
  );
}

/** The tier that a bracket has at one of its candidates. */
export function tierOf({ candidateTrees }: AdaptiveSlot, steps: number): DraftShape {
  return candidateTrees.find(({ depth }) => depth === steps) ?? chain(steps);
}

/**
 * The steps to start with where none are asked for.
 *
 * @throws AdaptiveConfigError when the config has no bracket.
 */
export function middleSteps(config: AdaptiveConfig): number {
  const steps = unionSteps(config);
  const middle = steps[Math.floor(steps.length / 2)];
  if (middle !== undefined) return middle;
  throw new AdaptiveConfigError("an adaptive config needs at least one batch size");
}

/** A flat config with the initial steps among its candidates, as SGLang did; others as they are. */
export function withInitialSteps(config: AdaptiveConfig, initialSteps: number): AdaptiveConfig {
  if (initialSteps < 1) return config; // the first format had no zero
  return freeze(
    config.slots.map((slot) =>
      slot.flat
        ? { ...slot, candidateSteps: ascending([...slot.candidateSteps, initialSteps]) }
        : slot
    ),
  );
}

function flatConfig(json: Json): AdaptiveConfig {
  checkKeys(json, FLAT_KEYS, "");
  const candidateSteps = candidates(json["candidate_steps"], { min: 1, where: "" });
  if (candidateSteps.length < 2) {
    throw new AdaptiveConfigError(
      `candidate_steps must have at least 2 distinct values, got ${shown(json["candidate_steps"])}`,
    );
  }
  return freeze([{
    batchSize: 1,
    candidateSteps,
    candidateTrees: [],
    ...numbers(json, ""),
    flat: true,
  }]);
}

function batchSlot(key: string, globals: Json, entry: unknown): AdaptiveSlot {
  const where = `batch size ${key}: `;
  // Digits alone are an array index and unique; "01" is a second spelling of "1".
  if (key !== String(Number(key))) {
    throw new AdaptiveConfigError(`${where}write the batch size as "${Number(key)}"`);
  }
  if (!isObject(entry)) {
    throw new AdaptiveConfigError(
      `${where}expected an object with candidate_steps, got ${shown(entry)}`,
    );
  }
  const candidateTrees = trees(entry["candidate_trees"], where);
  const listed = entry["candidate_steps"];
  const steps = listed === undefined && candidateTrees.length > 0
    ? []
    : candidates(listed, { min: 0, where });
  checkKeys(entry, SLOT_KEYS, where);
  return {
    batchSize: Number(key),
    candidateSteps: ascending([...steps, ...candidateTrees.map(({ depth }) => depth)]),
    candidateTrees,
    ...numbers({ ...globals, ...entry }, where),
    flat: false,
  };
}

function checkStrategy(json: Json): void {
  if (!Object.hasOwn(json, "strategy")) return;
  const { strategy } = json;
  if (strategy === "ema") return;
  throw new AdaptiveConfigError(
    strategy === "throughput_aware"
      ? 'strategy "throughput_aware" is a policy of its own here: --policy throughput-aware, ' +
        "whose window is window_size, and its interval update_interval"
      : `strategy must be "ema", got ${shown(strategy)}`,
  );
}

function checkKeys(json: Json, known: readonly string[], where: string): void {
  const unknown = Object.keys(json).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  throw new AdaptiveConfigError(
    `${where}unknown key ${shown(unknown)}, known: ${known.join(", ")}`,
  );
}

function freeze(slots: readonly AdaptiveSlot[]): AdaptiveConfig {
  return Object.freeze({ slots: Object.freeze(slots.map((slot) => Object.freeze(slot))) });
}

/** Python's `key.isdigit()`, for ASCII. */
function isBatchSize(key: string): boolean {
  return /^\d+$/.test(key);
}
