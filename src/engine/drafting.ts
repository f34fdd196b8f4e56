import {
  draftsAlone,
  HOST_DRAFT_TOKENS,
  hostDrafter,
  isHostAlgorithm,
} from "../draft/algorithms.ts";
import type { HostDrafter } from "../draft/host_drafter.ts";
import type { NgramRange } from "../draft/ngram.ts";
import { UsageError } from "../errors.ts";
import type { AcceptThresholds } from "../speculate/accept_thresholds.ts";
import type { RejectionRule } from "../speculate/rejection_rule.ts";
import { chain, type DraftShape, isChain } from "../speculate/round_shape.ts";
import type { ModelChoice } from "./load/load.ts";
import type { OutputConfig } from "./schedule/output.ts";
import type { SpeculationPlan } from "./schedule/speculation.ts";
import {
  type NamedPolicy,
  type OwnPolicy,
  policyPlan,
  type SpeculationChoice,
  speculationPlan,
  staticPlan,
} from "./schedule/speculation_choice.ts";

/** Decides how to speculate once it is known what the draft is. */
export type MakePlan = (algorithm: OutputConfig["algorithm"]) => SpeculationPlan;

/** How far to draft, and by which rule drafts are accepted. Plain data. */
export interface SpeculationOptions {
  /** What flags say, or a policy by name; default: nothing is drafted. */
  readonly speculate?: SpeculationChoice | NamedPolicy;
  /** Verify chains of a STANDALONE draft by rejection sampling. */
  readonly rejection?: RejectionRule;
  /** How many tokens a drafter that matches n-grams must and may match. */
  readonly ngram?: Partial<NgramRange>;
  /** Thresholds of relaxed acceptance, which is not lossless; default 1 each: off. */
  readonly acceptThresholds?: Partial<AcceptThresholds>;
  /** Accepted counts are drawn with these probabilities, not verified: for timing. */
  readonly simulateAcceptance?: readonly number[];
}

/** Who drafts, as objects of the caller. */
export interface LocalDrafting {
  /**
   * In place of `speculate`: the caller's own policy, or a function that decides once the draft's algorithm is known.
   */
  readonly plan?: OwnPolicy | MakePlan;
  /** Drafts on the host, next to the draft model where there is one. Absent: what `algorithm` names. */
  readonly drafter?: HostDrafter;
}

/**
 * Plans every round with tier `begin`, or with the depth that a request asks for if `others` has it. Numbers are
 * chains.
 */
export function statically(
  begin: number | DraftShape,
  others: readonly (number | DraftShape)[] = [],
): MakePlan {
  const [tier = chain(0), ...tiers] = [begin, ...others]
    .map((each) => typeof each === "number" ? chain(each) : each);
  return (algorithm) => algorithm === "NONE" ? staticPlan(chain(0)) : staticPlan(tier, tiers);
}

/**
 * @throws UsageError unless every draft is a chain of a STANDALONE draft, whose distributions are known, and acceptance
 * is not relaxed.
 */
export function checkRejection(
  rule: RejectionRule,
  algorithm: OutputConfig["algorithm"],
  tiers: readonly DraftShape[],
  relaxed: AcceptThresholds | undefined,
): void {
  const flag = `--acceptance ${rule}`;
  if (relaxed) {
    throw new UsageError(
      `Cannot use ${flag} with relaxed acceptance: they are two rules of acceptance`,
    );
  }
  const found = algorithm !== "STANDALONE"
    ? `here is ${algorithm === "NONE" ? "no draft" : algorithm}`
    : tiers.every(isChain)
    ? undefined
    : "here are trees";
  if (found === undefined) return;
  throw new UsageError(
    `Cannot use ${flag}: it is for chains of a STANDALONE draft, ${found}`,
  );
}

/** Whether the draft may be unloaded from the GPU; if not, a warning says why. */
export function mayLeave(
  algorithm: OutputConfig["algorithm"],
  shapes: readonly DraftShape[],
  onWarning: (line: string) => void,
): boolean {
  const why = algorithm === "NONE"
    ? "there is no draft"
    : !shapes.every(isChain)
    ? "features of trees are not kept"
    : !shapes.some(({ depth }) => depth === 0)
    ? "every round drafts; a policy with 0 among its steps may draft nothing"
    : shapes.every(({ depth }) => depth === 0)
    ? "no round drafts; --draft none takes no memory at all"
    : undefined;
  if (why !== undefined) onWarning(`--elastic-draft is not used: ${why}`);
  return why === undefined;
}

/** The drafter that `--drafter` names; undefined if it does not draft on the host or has nothing to draft. */
export function hostDrafterOf(
  { algorithm, draft }: ModelChoice,
  { speculate, ngram }: SpeculationOptions,
): HostDrafter | undefined {
  if (!isHostAlgorithm(algorithm)) return undefined;
  const { numDraftTokens = HOST_DRAFT_TOKENS, numSteps = undefined } =
    speculate && !("policy" in speculate) ? speculate : {};
  // With a draft model, `numSteps` counts the model's steps and does not limit the host's drafts.
  const most = !draftsAlone(algorithm) && draft !== "none" ? undefined : numSteps;
  const depth = Math.min(numDraftTokens - 1, most ?? Infinity);
  return depth < 1 ? undefined : hostDrafter(algorithm, { depth, ...ngram });
}

/** The plan of what is drafted on the device. */
export function planOf(
  { plan, speculate, maxBatch = 1, onWarning = () => {} }: {
    readonly plan?: LocalDrafting["plan"] | undefined;
    readonly speculate?: SpeculationOptions["speculate"] | undefined;
    readonly maxBatch?: number | undefined;
    readonly onWarning?: ((line: string) => void) | undefined;
  },
  { drafter, ...draft }: {
    readonly algorithm: string;
    readonly architecture: string;
    readonly drafter: HostDrafter | undefined;
  },
): SpeculationPlan {
  const chosen = plan ?? speculate ?? statically(0);
  if (typeof chosen === "function") return chosen(draft.algorithm);
  const of = { ...draft, maxBatch, onWarning };
  if ("policy" in chosen) return policyPlan(chosen, of);
  if (drafter === undefined) return speculationPlan(chosen, of);
  // `numDraftTokens` is for the host's drafts; without a draft model so is `numSteps`.
  const asked = { ...chosen, numDraftTokens: undefined };
  if (draft.algorithm !== "NONE") return speculationPlan(asked, of);
  const named = { ...of, algorithm: drafter.name };
  return speculationPlan({ ...asked, numSteps: 0, allSteps: false }, named);
}
