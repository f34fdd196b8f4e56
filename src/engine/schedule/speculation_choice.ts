import { fixedShape, type ShapeArguments } from "../../speculate/fixed_shape.ts";
import { policyRandom } from "../../speculate/noise.ts";
import { policyNamed } from "../../speculate/policies/registry.ts";
import { fixed } from "../../speculate/policies/static.ts";
import { type Policy, PolicyError } from "../../speculate/policy.ts";
import type { OutputConfig } from "./output.ts";
import { asUsageError } from "./presets.ts";
import { batchBuckets } from "../device/buckets.ts";
import {
  chain,
  chains,
  distinctTiers,
  type DraftShape,
  MAX_STEPS,
} from "../../speculate/round_shape.ts";
import { openSpeculation, type SpeculationPlan } from "./speculation.ts";

/** Depths that a request may ask for where all are built. */
const ALL_STEPS = Array.from({ length: MAX_STEPS + 1 }, (_, steps) => steps);

/**
 * The requested shape of each round's drafts, before the kind of draft is known. Plain data, which structuredClone
 * copies whole: it may be sent to a worker.
 */
export interface SpeculationChoice extends Omit<ShapeArguments, "algorithm" | "architecture"> {
  /** Build every static depth, because requests may ask for any. */
  readonly allSteps: boolean;
}

/** A registered policy and the options it is to have. Plain data as SpeculationChoice is. */
export interface NamedPolicy {
  readonly policy: string;
  /** The policy's options, as the user wrote them; default {}. */
  readonly options?: unknown;
  /** Draft steps to begin with. */
  readonly numSteps?: number;
  /** Seed of the policy's random choices, u32; default 0. */
  readonly seed?: number;
}

/** A policy made by the caller: it stays in the caller's thread. */
export interface OwnPolicy {
  readonly policy: Policy;
  /** For the report; default "own". */
  readonly name?: string;
}

interface PlanFor {
  /** What the draft is. */
  readonly algorithm: OutputConfig["algorithm"];
  /** Architecture of the target, as config.json names it. */
  readonly architecture: string;
  /** Sequences in flight: a policy uses the batch sizes that are built for them. */
  readonly maxBatch: number;
  /** Called with a line for each thing that is not done as requested. */
  readonly onWarning: (line: string) => void;
}

/**
 * The plan of a policy for a draft of this kind; without a draft nothing is drafted.
 *
 * @throws UsageError for a name, options or steps that cannot be used.
 */
export function policyPlan(
  asked: NamedPolicy | OwnPolicy,
  of: Omit<PlanFor, "architecture">,
): SpeculationPlan {
  const plan = namedPlan(asked, of);
  if (of.algorithm !== "NONE") return plan;
  if (plan.tiers.some(({ depth }) => depth > 0)) {
    of.onWarning(`policy "${plan.speculation.report.policy}" is not used: there is no draft`);
  }
  return staticPlan(chain(0));
}

/**
 * The plan of a policy for an engine that has a drafter.
 *
 * @throws UsageError for a name, options or steps that cannot be used.
 */
export function namedPlan(
  asked: NamedPolicy | OwnPolicy,
  { maxBatch, onWarning }: Pick<PlanFor, "maxBatch" | "onWarning">,
): SpeculationPlan {
  const found = asUsageError(() => policyOf(asked, batchBuckets(maxBatch)));
  const { name, policy, numSteps } = found;
  const { tiers } = policy;
  asUsageError(() => checkSteps(found, tiers.map(({ depth }) => depth)));
  const tier = (numSteps === undefined ? tiers : tiers.filter(({ depth }) => depth === numSteps))
    .at(-1) as DraftShape;
  const speculation = openSpeculation(name, policy, { tier, onWarning });
  const { costs, confident, packed } = policy;
  return {
    tier,
    tiers,
    warmed: tiers,
    speculation,
    ...costs && { costs },
    ...confident && { confident },
    ...packed && { packed },
  };
}

/** Plans every round with this tier, or with the depth that a request asks for if `others` has more. */
export function staticPlan(tier: DraftShape, others: readonly DraftShape[] = []): SpeculationPlan {
  const tiers = distinctTiers([tier, ...others]);
  return { tier, tiers, speculation: openSpeculation("static", fixed(tier)) };
}

/**
 * The plan of a choice for a draft of this kind.
 *
 * @throws UsageError for a shape that cannot be drafted.
 */
export function speculationPlan(
  { allSteps, ...choice }: SpeculationChoice,
  { algorithm, architecture, onWarning }: Omit<PlanFor, "maxBatch">,
): SpeculationPlan {
  const { tier, warnings } = asUsageError(() => fixedShape({ ...choice, algorithm, architecture }));
  for (const line of warnings) onWarning(line);
  return staticPlan(tier, allSteps && algorithm !== "NONE" ? chains(ALL_STEPS) : []);
}

interface OpenedPolicy {
  readonly name: string;
  readonly policy: Policy;
  readonly numSteps?: number | undefined;
}

/** @throws PolicyError for a name or options that cannot be used. */
function policyOf(asked: NamedPolicy | OwnPolicy, buckets: readonly number[]): OpenedPolicy {
  if (!isNamed(asked)) return { name: asked.name ?? "own", policy: asked.policy };
  const { policy: name, options = {}, seed = 0, ...begin } = asked;
  const setup = { ...begin, buckets, random: policyRandom(seed) };
  return { name, policy: policyNamed(name, options, setup), numSteps: begin.numSteps };
}

function isNamed(asked: NamedPolicy | OwnPolicy): asked is NamedPolicy {
  return typeof asked.policy === "string";
}

/** @throws PolicyError for steps that no tier can be built for, or that the policy does not have. */
function checkSteps(
  { name, numSteps }: OpenedPolicy,
  steps: readonly number[],
): void {
  const deep = steps.find((each) => each > MAX_STEPS);
  if (deep !== undefined) {
    throw new PolicyError(
      `Cannot use policy "${name}": it has ${deep} steps, at most ${MAX_STEPS} are supported`,
    );
  }
  if (numSteps !== undefined && !steps.includes(numSteps)) {
    throw new PolicyError(
      `Cannot use policy "${name}": it has ${
        steps.join(", ")
      } steps, not ${numSteps} to begin with`,
    );
  }
}
