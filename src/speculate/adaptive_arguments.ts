import {
  type AdaptiveConfig,
  middleSteps,
  unionSteps,
  unionTiers,
  withInitialSteps,
} from "./adaptive_config.ts";
import { AdaptiveConfigError } from "./adaptive_fields.ts";
import { chain, type DraftShape } from "./round_shape.ts";
import { automaticTree, treeShape } from "./tree_shape.ts";

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
  /** `--draft-tree`: all three of them; "auto" is SGLang's choice for `architecture`. */
  readonly tree?: DraftShape | "auto" | undefined;
  /** Of the target, as config.json names it. */
  readonly architecture: string;
}

interface Resolved {
  /** What rounds start with: num_steps levels, eagle_topk wide, num_draft_tokens rows. */
  readonly tier: DraftShape;
  /** Every tier that a round may have, ascending. */
  readonly tiers: readonly DraftShape[];
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

function unsupported({ algorithm, eagleTopk, tree }: SpeculationArguments): string | undefined {
  // SGLang takes NEXTN as another name of EAGLE.
  if (!["EAGLE", "EAGLE3", "NEXTN"].includes(algorithm)) {
    return `only EAGLE, EAGLE3 and NEXTN adapt, not ${algorithm}`;
  }
  if (eagleTopk !== undefined && eagleTopk !== 1) {
    return `only chains of drafts adapt, not --speculative-eagle-topk ${eagleTopk}`;
  }
  return tree &&
    "--draft-tree is one fixed tier (candidate_trees of an adaptive config names trees)";
}

function adaptiveSpeculation(args: SpeculationArguments): ResolvedSpeculation {
  const listed = unionSteps(args.config);
  const numSteps = args.numSteps ?? middleSteps(args.config);
  const config = withInitialSteps(args.config, numSteps);
  const steps = unionSteps(config);
  const tiers = unionTiers(config);
  const tier = tiers.find(({ depth }) => depth === numSteps);
  if (tier === undefined) {
    throw new AdaptiveConfigError(
      `Cannot use "--num-steps ${numSteps}": the adaptive config's steps are ` +
        steps.join(", "),
    );
  }
  const added = `the adaptive config's steps ${listed.join(", ")} take in ${numSteps}, which ` +
    "--num-steps starts with";
  const warnings = chainWarnings(args, numSteps);
  return {
    policy: "adaptive",
    config,
    tier,
    tiers,
    warnings: listed.includes(numSteps) ? warnings : [added, ...warnings],
  };
}

function staticSpeculation(
  args: SpeculationArguments,
  before: readonly string[],
): ResolvedSpeculation {
  const { algorithm, eagleTopk = 1, numDraftTokens, tree, architecture } = args;
  if (tree && algorithm !== "NONE") {
    refuseBeside(args);
    const tier = tree === "auto" ? automaticTree(algorithm, architecture) : tree;
    return { policy: "fixed", tier, tiers: [tier], warnings: before };
  }
  if (args.numSteps === undefined && algorithm !== "NONE") refuseWithoutSteps(args);
  const numSteps = args.numSteps ?? (algorithm === "NONE" ? 0 : DEFAULT_NUM_STEPS);
  if (eagleTopk > 1 && numSteps > 0) {
    const tier = treeShape({ depth: numSteps, width: eagleTopk, rows: numDraftTokens });
    return { policy: "fixed", tier, tiers: [tier], warnings: before };
  }
  const tier = chain(numSteps);
  const warnings = [...before, ...chainWarnings(args, numSteps)];
  return { policy: "fixed", tier, tiers: [tier], warnings };
}

/** A tree is named whole or in parts. */
function refuseBeside({ numSteps, eagleTopk, numDraftTokens }: SpeculationArguments): void {
  if ((numSteps ?? eagleTopk ?? numDraftTokens) === undefined) return;
  throw new AdaptiveConfigError(
    "Cannot use --draft-tree with --num-steps, --speculative-eagle-topk or " +
      "--speculative-num-draft-tokens: it says all three",
  );
}

/** As SGLang: without num_steps all three are chosen automatically. */
function refuseWithoutSteps({ eagleTopk, numDraftTokens }: SpeculationArguments): void {
  const given = eagleTopk !== undefined
    ? "--speculative-eagle-topk"
    : numDraftTokens !== undefined
    ? "--speculative-num-draft-tokens"
    : undefined;
  if (given === undefined) return;
  throw new AdaptiveConfigError(
    `Cannot use ${given} without --num-steps: all three are chosen, or none`,
  );
}

/** With topk 1 the drafts are a chain: a row for each and one for the token before them. */
function chainWarnings({ numDraftTokens }: SpeculationArguments, numSteps: number): string[] {
  const wrong = numDraftTokens !== undefined && numDraftTokens !== numSteps + 1;
  return wrong ? [ADJUSTED_DRAFT_TOKENS] : [];
}
