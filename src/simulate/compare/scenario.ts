import { totalMs } from "../../speculate/costs/lookup.ts";
import type { AcceptanceModel } from "../acceptance/model.ts";
import { geometric, spreadOut } from "../acceptance/model.ts";
import { phasesOfTime, phasesOfWork } from "../acceptance/phases.ts";
import { uniformAt } from "../acceptance/chance.ts";
import type { Pricing } from "../costs/pricing.ts";
import type { ScenarioName } from "./scenario_names.ts";
import type { Simulation } from "../run/simulation.ts";
import { batchSource, type Source } from "../run/source.ts";

/** A world to run policies in: batch size over time and acceptance over time. */
export interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly maxBatch: number;
  /** Batch size by time, in plain rounds from the start. */
  batch(seed: number): (round: number) => number;
  /** @param roundMs milliseconds of a plain round. */
  acceptance(roundMs: number): AcceptanceModel;
  /** The batch whose plain round is the unit of time. */
  readonly typicalBatch: number;
  /** What is the same for every policy: the amount of work (the texts), or the time that the run lasts. */
  readonly fixed: "work" | "time";
}

/** A scenario on a machine. */
export interface ScenarioSetup {
  readonly source: () => Source;
  readonly acceptance: AcceptanceModel;
  readonly maxBatch: number;
  readonly until: Simulation["until"];
}

/** Acceptance of the phases, and plain rounds that one lasts. */
const PHASES = [0.35, 0.85] as const;
const PHASE_ROUNDS = 300;
/** Requests differ, and so do a request's tokens: standard deviations of log-odds. */
const SPREAD = { requests: 0.6, tokens: 1 } as const;
/** Alternating batch sizes, and plain rounds that each lasts. */
const BURST = [2, 96] as const;
const BURST_ROUNDS = 100;
/** Plain rounds between two steps of the walk, and its largest step. */
const [WALK_ROUNDS, WALK_STEP] = [5, 6] as const;
const MAX_WALK = 128;

/** Tokens of a sequence for which a phase lasts where the work is fixed: two a round. */
const PHASE_TOKENS = 2 * PHASE_ROUNDS;

const phases = (batch: 1 | 4 | 16 | 64 | 128): Scenario & { readonly name: ScenarioName } => {
  const acceptance = spreadOut(phasesOfWork(PHASES, PHASE_TOKENS * batch), SPREAD);
  const about = `batch ${batch}; acceptance ${PHASES.join(" and ")} in turn`;
  return { ...fixedBatch(batch, acceptance), name: `phases-${batch}`, about };
};

/** A batch and an acceptance that stay: the same work for every policy. */
export function fixedBatch(batch: number, acceptance: AcceptanceModel): Scenario {
  return {
    name: `batch ${batch}`,
    about: `acceptance ${acceptance.name}`,
    maxBatch: batch,
    typicalBatch: batch,
    fixed: "work",
    batch: () => () => batch,
    acceptance: () => acceptance,
  };
}

/**
 * The seven worlds of `eyrie simulate --scenario`. Changes happen after the same work or the same time for
 * every policy; if they were timed by rounds, a policy with short rounds would leave a bad phase sooner. The
 * unit of time is a plain round, so a scenario fits every machine.
 */
export const SCENARIOS: readonly (Scenario & { readonly name: ScenarioName })[] = [
  ...([1, 4, 16, 64, 128] as const).map(phases),
  {
    name: "walk",
    about: `the batch walks between 1 and ${MAX_WALK}; acceptance ${PHASES.join(" and ")} in turn`,
    maxBatch: MAX_WALK,
    typicalBatch: MAX_WALK / 2,
    batch: walk,
    fixed: "time",
    acceptance: (roundMs) => spreadOut(phasesOfTime(PHASES, PHASE_ROUNDS * roundMs), SPREAD),
  },
  {
    name: "bursty",
    about: `batch ${BURST.join(" and ")} in turn; acceptance 0.7`,
    maxBatch: BURST[1],
    typicalBatch: BURST[1] / 2,
    fixed: "time",
    batch: () => (round) => BURST[Math.floor(round / BURST_ROUNDS) % 2] ?? 1,
    acceptance: () => spreadOut(geometric(0.7), SPREAD),
  },
];

/** A walk with steps from -WALK_STEP to WALK_STEP, reflected at 1 and MAX_WALK. */
function walk(seed: number): (round: number) => number {
  const sizes = [MAX_WALK / 2];
  return (round) => {
    const at = Math.floor(round / WALK_ROUNDS);
    while (sizes.length <= at) {
      const step = Math.floor((2 * WALK_STEP + 1) * uniformAt(seed, sizes.length, 41)) - WALK_STEP;
      const next = (sizes.at(-1) ?? 1) + step;
      sizes.push(next < 1 ? 2 - next : next > MAX_WALK ? 2 * MAX_WALK - next : next);
    }
    return sizes[at] ?? 1;
  };
}

/** Tokens of prompt and answer in scenarios, whose prompts cost nothing. */
const LENGTHS = { promptTokens: 256, outputTokens: 256 } as const;

/** Tokens that a sequence of a scenario has stored on average. */
const SCENARIO_CELLS: number = LENGTHS.promptTokens + LENGTHS.outputTokens / 2;

/**
 * The scenario on a machine.
 *
 * @param rounds how many plain rounds it lasts, or rounds of two tokens a sequence.
 */
export function staged(
  scenario: Scenario,
  pricing: Pricing,
  { rounds, seed }: { readonly rounds: number; readonly seed: number },
): ScenarioSetup {
  const batch = scenario.typicalBatch;
  const [steps = 0] = pricing.steps ?? [];
  const cells = batch * SCENARIO_CELLS;
  const plain = { batch, steps, drafts: undefined, cells, roundsPerSync: 1 };
  const roundMs = totalMs(pricing.round(plain));
  const size = scenario.batch(seed);
  return {
    source: () => batchSource((ms) => size(ms / roundMs), { ...LENGTHS, seed }),
    acceptance: scenario.acceptance(roundMs),
    maxBatch: scenario.maxBatch,
    until: scenario.fixed === "time"
      ? { ms: rounds * roundMs }
      : { tokens: rounds * batch * PHASE_TOKENS / PHASE_ROUNDS },
  };
}
