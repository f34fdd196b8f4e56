// `deno run -A lab/simulate.ts [POLICY...]`: how many rounds the simulator plays in a minute of this
// thread's CPU time, and in a minute of wall time, by policy and batch.
import process from "node:process";
import { policyOf } from "../src/cli/options/policy_option.ts";
import { geometric } from "../src/simulate/acceptance/model.ts";
import { policyArm } from "../src/simulate/compare/compare.ts";
import { tablePricing } from "../src/simulate/costs/pricing.ts";
import { simulate } from "../src/simulate/run/simulation.ts";
import { batchSource } from "../src/simulate/run/source.ts";
import { COST_PRESETS } from "../tools/cost_presets.ts";

const BATCHES = [1, 8, 32];
/** Sequences of all rounds together. */
const LANES = 1_000_000;

const table = COST_PRESETS["rtx4090-7b"];
if (table === undefined) throw new Error("no such machine");
const pricing = tablePricing(table);

for (const text of Deno.args.length > 0 ? Deno.args : ["static:num_steps=3", "ema"]) {
  const { policy, options } = policyOf(text);
  for (const maxBatch of BATCHES) {
    const world = {
      pricing,
      acceptance: geometric(0.7),
      seed: 1,
      source: () => batchSource(() => maxBatch, { seed: 1, promptTokens: 256, outputTokens: 256 }),
      machine: {
        maxBatch,
        kvTokens: Infinity,
        chunkRows: 256,
        roundsPerSync: 1,
        noise: 0.05,
        confidenceNoise: 0.5,
      },
      until: { rounds: Math.ceil(LANES / maxBatch) },
    };
    const [cpu, began] = [process.cpuUsage(), performance.now()];
    const { rounds } = simulate({
      ...world,
      source: world.source(),
      policy: policyArm(policy, options, text).policy(world, []),
    });
    const wallMs = performance.now() - began;
    const { user, system } = process.cpuUsage(cpu);
    const millions = (ms: number) => (rounds / ms * 60_000 / 1e6).toFixed(2);
    Deno.stdout.writeSync(new TextEncoder().encode(
      `${text}, batch ${maxBatch}: ${millions((user + system) / 1000)} million rounds a minute, ` +
        `${millions(wallMs)} by the wall\n`,
    ));
  }
}
