import { UsageError } from "../../../errors.ts";
import { refuseImpossibleBackends } from "./backend_flags.ts";
import { BENCH_AXES, BENCH_OUTPUT, BENCH_RANDOM, BENCH_RUN, hasDraft } from "./bench_flags.ts";

/** Flags that mean nothing to `--profile`, `--growth` and `--rewrites`. */
const SWEEP_ONLY = {
  trees: BENCH_AXES.trees,
  policies: BENCH_AXES.policies,
  promptTokens: BENCH_AXES.promptTokens,
  outputTokens: BENCH_AXES.outputTokens,
  temperatures: BENCH_AXES.temperatures,
  roundsPerSync: BENCH_AXES.roundsPerSync,
  workload: BENCH_RUN.workload,
  resume: BENCH_OUTPUT.resume,
  emitConfig: BENCH_OUTPUT.emitConfig,
};

/** And to the latter two. */
const STEPS_ONLY = {
  numSteps: BENCH_AXES.numSteps,
  simulateAcceptance: BENCH_RANDOM.simulateAcceptance,
};

/** Flags of `bench` that contradict each other. `given` has only what was typed, no defaults. */
export function refuseImpossibleBench(given: Readonly<Record<string, unknown>>): void {
  const { model, draft, randomWeights, randomDraft, workload, numSteps, trees } = given;
  const { policies } = given;
  const clash = (flag: string, other: string, allowed: string) => {
    throw new UsageError(`Cannot use "${flag}" with "${other}": ${allowed}`);
  };
  if (randomWeights !== undefined) {
    if (model !== undefined) clash("--random-weights", "--model", "allowed is one of them");
    if (draft !== undefined) clash("--random-weights", "--draft", "allowed is --random-draft");
    if (workload !== undefined && workload !== "random") {
      clash("--random-weights", `--workload ${workload}`, "it knows no text; allowed is random");
    }
  } else if (randomDraft !== undefined) {
    throw new UsageError('Cannot use "--random-draft": it needs --random-weights');
  }
  const drafts = Array.isArray(numSteps) && numSteps.some((steps) => steps > 0)
    ? `--num-steps ${numSteps}`
    : trees !== undefined
    ? `--draft-tree ${trees}`
    : policies !== undefined
    ? `--policy ${policies}`
    : undefined;
  if (drafts !== undefined && !hasDraft(given)) {
    if (draft === "none") clash(drafts, "--draft none", "nothing drafts; allowed is --num-steps 0");
    const [target, head] = randomWeights === undefined
      ? ["--model", "--draft MODEL"]
      : ["--random-weights", "--random-draft CONFIG.json"];
    clash(drafts, target, `it needs a draft; give ${head}`);
  }
  refuseImpossibleProfile(given);
  refuseImpossibleLlama(given);
  refuseImpossibleBackends(given);
  if (trees !== undefined && given["simulateAcceptance"] !== undefined) {
    clash("--draft-tree", "--simulate-acceptance", "acceptance is simulated for chains alone");
  }
  if (given["emitConfig"] !== undefined && given["simulateAcceptance"] !== undefined) {
    clash("--emit-config", "--simulate-acceptance", "a config needs measured acceptance");
  }
}

/** Flags of which `--llama-bench` has its own values, or that mean nothing to it. */
const NOT_LLAMA = {
  batchSizes: BENCH_AXES.batchSizes,
  promptTokens: BENCH_AXES.promptTokens,
  outputTokens: BENCH_AXES.outputTokens,
  temperatures: BENCH_AXES.temperatures,
  depths: BENCH_AXES.depths,
  roundsPerSync: BENCH_AXES.roundsPerSync,
  profile: { flag: "--profile" },
  growth: { flag: "--growth" },
  rewrites: { flag: "--rewrites" },
  resume: BENCH_OUTPUT.resume,
  emitConfig: BENCH_OUTPUT.emitConfig,
};

function refuseImpossibleLlama(given: Readonly<Record<string, unknown>>): void {
  const { llamaBench, format, webgpu } = given;
  if (llamaBench !== true) return;
  for (const [key, { flag }] of Object.entries(NOT_LLAMA)) {
    if (given[key] === undefined || given[key] === false) continue;
    throw new UsageError(
      `Cannot use "${flag}" with "--llama-bench": its tests are pp512 and tg128`,
    );
  }
  if (format !== undefined && !["md", "json", "jsonl"].includes(String(format))) {
    throw new UsageError(
      `Cannot use "--format ${format}" with "--llama-bench": allowed is md, json, jsonl`,
    );
  }
  if (Array.isArray(webgpu) && webgpu.length > 1) {
    throw new UsageError(
      `Cannot use "--llama-bench" with "--webgpu ${webgpu.join(",")}": it is of one WebGPU`,
    );
  }
}

/** Measurements that are no sweep, by the names of their values; of each the formats that it has. */
const MODES = {
  profile: { flag: "--profile", formats: ["md", "json"] },
  growth: { flag: "--growth", formats: BENCH_OUTPUT.format.choices },
  rewrites: { flag: "--rewrites", formats: ["md", "csv", "json", "jsonl"] },
} as const;

function refuseImpossibleProfile(given: Readonly<Record<string, unknown>>): void {
  const { profile, growth, rewrites, bandwidth, rows, format } = given;
  if (growth !== true && rewrites !== true && rows !== undefined) {
    throw new UsageError('Cannot use "--rows": it needs --growth or --rewrites');
  }
  if (profile !== true && growth !== true && bandwidth !== undefined) {
    throw new UsageError('Cannot use "--bandwidth": it needs --profile or --growth');
  }
  const [mode, other] = Object.entries(MODES).flatMap(([key, mode]) =>
    given[key] === true ? [mode] : []
  );
  if (mode === undefined) return;
  const { flag: name, formats } = mode;
  if (other !== undefined) {
    throw new UsageError(`Cannot use "${name}" with "${other.flag}": allowed is one of them`);
  }
  const others = profile === true ? SWEEP_ONLY : { ...SWEEP_ONLY, ...STEPS_ONLY };
  for (const [key, { flag }] of Object.entries(others)) {
    if (given[key] === undefined) continue;
    throw new UsageError(`Cannot use "${flag}" with "${name}": it belongs to a sweep`);
  }
  if (profile !== true) refuseSeveralModels(given);
  if (format === undefined || formats.some((known) => known === format)) return;
  throw new UsageError(
    `Cannot use "--format ${format}" with "${name}": allowed is ${formats.join(", ")}`,
  );
}

/** A draft is of one model. */
function refuseSeveralModels(given: Readonly<Record<string, unknown>>): void {
  const { model, randomWeights, draft, randomDraft } = given;
  if (!String(randomWeights ?? model ?? "").includes(",")) return;
  const [flag, value] = randomDraft === undefined
    ? ["--draft", draft]
    : ["--random-draft", randomDraft];
  if (value === undefined || value === "none") return;
  throw new UsageError(`Cannot use "${flag} ${value}" with several models: it is of one`);
}
