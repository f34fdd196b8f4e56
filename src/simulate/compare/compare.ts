import { policyRandom } from "../../speculate/noise.ts";
import { policyNamed } from "../../speculate/policies/registry.ts";
import { type Policy, PolicyError } from "../../speculate/policy.ts";
import { UsageError } from "../../errors.ts";
import type { AcceptanceModel } from "../acceptance/model.ts";
import type { Pricing } from "../costs/pricing.ts";
import {
  type Machine,
  simulate,
  type SimulatedPolicy,
  type Simulation,
} from "../run/simulation.ts";
import type { Source } from "../run/source.ts";
import type { SimulationResult } from "../run/tally.ts";
import { depthsOf, oracle, perBatchOracle } from "./oracle.ts";

/** One world, in which every policy is run with the same random numbers. */
export interface World {
  readonly pricing: Pricing;
  readonly acceptance: AcceptanceModel;
  /** Made anew for every policy. */
  readonly source: () => Source;
  readonly machine: Machine;
  readonly until: Simulation["until"];
  /** u32. */
  readonly seed: number;
}

/** What an arm is compared as. */
export type ArmKind = "policy" | "static" | "oracle";

export interface Arm {
  readonly kind: ArmKind;
  readonly name: string;
  /** @param before what ran in the same world before it. */
  policy(world: World, before: readonly ArmResult[]): SimulatedPolicy;
}

/** The result of an arm in a world. */
export interface ArmResult {
  readonly arm: Arm;
  readonly result: SimulationResult;
}

/** Policies as they were asked for, then every static depth, then the oracles, each once. */
export function armsOf(policies: readonly Arm[], pricing: Pricing): Arm[] {
  const statics = depthsOf(pricing).map((depth) => staticArm(depth));
  return [...new Set([...policies, ...statics, ORACLE, BATCH_ORACLE])];
}

export const ORACLE: Arm = {
  kind: "oracle",
  name: "oracle",
  policy: ({ pricing }) => oracle(pricing),
};

export const DEPTH_ORACLE: Arm = {
  kind: "policy",
  name: "oracle:depth",
  policy: ({ pricing }) => oracle(pricing, { whole: true }),
};

const BATCH_ORACLE: Arm = {
  kind: "oracle",
  name: "oracle:batch",
  policy: ({ pricing }, before) =>
    perBatchOracle(
      pricing,
      before.filter(({ arm }) => arm.kind === "static").map(({ result }) => result),
    ),
};

function staticArm(depth: number): Arm {
  return { ...policyArm("static", { num_steps: depth }), kind: "static", name: `static:${depth}` };
}

/**
 * A registered policy.
 *
 * @param label what results call it; default its name.
 */
export function policyArm(name: string, options: unknown, label: string = name): Arm {
  return {
    kind: "policy",
    name: label,
    policy: (world) => ({
      name: label,
      open() {
        const policy = openPolicy(name, options, world);
        const unpriced = unpricedDepth(policy, world);
        if (unpriced === undefined) return policy;
        throw new UsageError(
          `Cannot use policy "${label}": it drafts ${unpriced} steps, ` +
            `and the cost table has only ${world.pricing.steps?.join(", ")}`,
        );
      },
    }),
  };
}

/** Whether the world has the costs of every depth that a policy drafts. */
export function isPriced(name: string, world: World): boolean {
  return unpricedDepth(openPolicy(name, {}, world), world) === undefined;
}

function openPolicy(name: string, options: unknown, { pricing, seed }: World): Policy {
  const { buckets } = pricing;
  return usage(() => policyNamed(name, options, { buckets, random: policyRandom(seed) }));
}

function unpricedDepth({ tiers }: Policy, { pricing: { steps } }: World): number | undefined {
  return tiers.find(({ depth }) => steps?.includes(depth) === false)?.depth;
}

function usage<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw error instanceof PolicyError ? new UsageError(error.message, { cause: error }) : error;
  }
}

/** Runs every arm in the same world, one after the other. */
export function* compare(world: World, arms: readonly Arm[]): Generator<ArmResult> {
  const { source, ...rest } = world;
  const before: ArmResult[] = [];
  for (const arm of arms) {
    const policy = arm.policy(world, before);
    const found = { arm, result: simulate({ ...rest, source: source(), policy }) };
    before.push(found);
    yield found;
  }
}
