// Small worlds with round numbers.
import { COST_FORMAT, type CostTable } from "../../src/speculate/costs/table.ts";
import { geometric } from "../../src/simulate/acceptance/model.ts";
import { tablePricing } from "../../src/simulate/costs/pricing.ts";
import type { IncomingRequest } from "../../src/simulate/run/request.ts";
import type { Machine, SimulatedPolicy, Simulation } from "../../src/simulate/run/simulation.ts";
import { openSource } from "../../src/simulate/run/source.ts";
import { policyNamed } from "../../src/speculate/policies/registry.ts";
import { policyRandom } from "../../src/speculate/noise.ts";

/** A round takes 10 ms plus 1 a row, 2 a draft level and 3 for draft-extend. Prefill takes 0.5 ms a token. */
export const COSTS: CostTable = {
  format: COST_FORMAT,
  adapter: "none",
  model: "none",
  draft: "none",
  buckets: [1, 2, 4, 8, 16, 32],
  level: [{ at: 1, ms: 2 }],
  verify: [{ at: 1, ms: 11 }, { at: 2, ms: 12 }],
  perCell: 0,
  extend: [{ at: 1, ms: 3 }],
  catchUp: [{ at: 1, ms: 0.25 }, { at: 2, ms: 0.5 }],
  prefill: [{ at: 1, ms: 0.5 }, { at: 2, ms: 1 }],
  host: 0,
  fitError: 0,
};

export const MACHINE: Machine = {
  maxBatch: 4,
  kvTokens: Infinity,
  chunkRows: 256,
  roundsPerSync: 1,
  noise: 0,
  confidenceNoise: undefined,
};

export function policyOf(name: string, options: unknown): SimulatedPolicy {
  const setup = { buckets: COSTS.buckets, random: policyRandom(1) };
  return { name, open: () => policyNamed(name, options, setup) };
}

export function statically(steps: number): SimulatedPolicy {
  return policyOf("static", { num_steps: steps });
}

/** A simulation of these requests, which drafts nothing unless `others` says so. */
export function simulationOf(
  coming: readonly Partial<IncomingRequest>[],
  others: Partial<Simulation> = {},
): Simulation {
  const arrivals = coming.map((each, seed) => ({ atMs: 0, seed, ...each }));
  return {
    pricing: tablePricing(COSTS),
    acceptance: geometric(1),
    source: openSource(arrivals, { promptTokens: 10, outputTokens: 5 }),
    policy: statically(0),
    machine: MACHINE,
    until: {},
    seed: 7,
    ...others,
  };
}
