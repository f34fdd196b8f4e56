import {
  type AdaptiveConfig,
  AdaptiveConfigError,
  middleSteps,
  unionSteps,
  withInitialSteps,
} from "./adaptive_config.ts";

/** Speculation arguments as given, SGLang's names; undefined where they were not. */
export interface SpeculationArguments {
  /** `--speculative-adaptive` */
  readonly adaptive: boolean;
  /** The config to use when adaptive: the given one, or the default preset. */
  readonly config: AdaptiveConfig;
  /** Whether the config was asked for by name or file. */
  readonly configGiven: boolean;
  /** `--speculative-algorithm`, or what the draft is; NONE without a draft. */
  readonly algorithm: string;
  readonly eagleTopk: number | undefined;
  readonly numSteps: number | undefined;
  readonly numDraftTokens: number | undefined;
}

interface Resolved {
  readonly eagleTopk: number;
  /** The steps to start with. */
  readonly numSteps: number;
  /** Rows that verify takes for a request at `numSteps`. */
  readonly numDraftTokens: number;
  /** Every num_steps that a round may have, ascending. */
  readonly tiers: readonly number[];
  readonly warnings: readonly string[];
}

export type ResolvedSpeculation =
  | Resolved & { readonly policy: "fixed" }
  | Resolved & { readonly policy: "adaptive"; readonly config: AdaptiveConfig };

/** SGLang's automatic num_steps for architectures without a better one. */
export const DEFAULT_NUM_STEPS = 3;

const IGNORED_CONFIG =
  "the speculative adaptive config is not used: it needs --speculative-adaptive";
const ADJUSTED_DRAFT_TOKENS =
  "--speculative-num-draft-tokens is not used: a chain verifies its steps and one row more";

/**
 * What the arguments come to: adaptive where it is asked for and possible, else static with a
 * warning that says why not (SGLang's `speculative_hook`).
 *
 * @throws AdaptiveConfigError when `numSteps` is none of the config's candidates.
 */
export function resolveAdaptive(args: SpeculationArguments): ResolvedSpeculation {
  if (!args.adaptive) return staticSpeculation(args, args.configGiven ? [IGNORED_CONFIG] : []);
  const reason = unsupported(args);
  if (reason === undefined) return adaptiveSpeculation(args);
  return staticSpeculation(args, [`the number of draft steps stays fixed: ${reason}`]);
}

function unsupported({ algorithm, eagleTopk }: SpeculationArguments): string | undefined {
  // SGLang takes NEXTN as another name of EAGLE.
  if (!["EAGLE", "EAGLE3", "NEXTN"].includes(algorithm)) {
    return `only EAGLE, EAGLE3 and NEXTN adapt, not ${algorithm}`;
  }
  if (eagleTopk !== undefined && eagleTopk !== 1) {
    return `only chains of drafts adapt, not --speculative-eagle-topk ${eagleTopk}`;
  }
  return undefined;
}

function adaptiveSpeculation(args: SpeculationArguments): ResolvedSpeculation {
  const listed = unionSteps(args.config);
  const numSteps = args.numSteps ?? middleSteps(args.config);
  const config = withInitialSteps(args.config, numSteps);
  const tiers = unionSteps(config);
  if (!tiers.includes(numSteps)) {
    throw new AdaptiveConfigError(
      `Cannot use "--speculative-num-steps ${numSteps}": the adaptive config's steps are ` +
        tiers.join(", "),
    );
  }
  const added = `the adaptive config's steps ${listed.join(", ")} take in ${numSteps}, which ` +
    "--speculative-num-steps starts with";
  const { numDraftTokens, warnings } = chain(args, numSteps);
  return {
    policy: "adaptive",
    config,
    eagleTopk: 1,
    numSteps,
    numDraftTokens,
    tiers,
    warnings: listed.includes(numSteps) ? warnings : [added, ...warnings],
  };
}

function staticSpeculation(
  args: SpeculationArguments,
  before: readonly string[],
): ResolvedSpeculation {
  const eagleTopk = args.eagleTopk ?? 1;
  const numSteps = args.numSteps ?? (args.algorithm === "NONE" ? 0 : DEFAULT_NUM_STEPS);
  const { numDraftTokens, warnings } = eagleTopk === 1
    ? chain(args, numSteps)
    : { numDraftTokens: args.numDraftTokens ?? numSteps + 1, warnings: [] };
  return {
    policy: "fixed",
    eagleTopk,
    numSteps,
    numDraftTokens,
    tiers: [numSteps],
    warnings: [...before, ...warnings],
  };
}

/** With topk 1 the drafts are a chain: a row for each and one for the token before them. */
function chain({ numDraftTokens }: SpeculationArguments, numSteps: number) {
  const rows = numSteps + 1;
  const wrong = numDraftTokens !== undefined && numDraftTokens !== rows;
  return { numDraftTokens: rows, warnings: wrong ? [ADJUSTED_DRAFT_TOKENS] : [] };
}
