import { UsageError } from "../../../errors.ts";
import { draftsNothing, policyTexts } from "../policy_option.ts";
import { COSTS } from "../option_groups.ts";
import { refuseImpossibleBackends } from "./backend_flags.ts";
import {
  BENCH_AXES,
  BENCH_OUTPUT,
  BENCH_RANDOM,
  BENCH_RUN,
  BENCH_TABLE,
  hasDraft,
} from "./bench_flags.ts";
import { FEWEST_BLOCKS } from "../../../measure/statistics.ts";
import { clash } from "../clash.ts";
import { isRandom } from "./random_model.ts";

/** Flags that belong to a measurement of settings. */
const OF_SETTINGS = {
  promptTokens: BENCH_AXES.promptTokens,
  outputTokens: BENCH_AXES.outputTokens,
  temperatures: BENCH_AXES.temperatures,
  roundsPerSync: BENCH_AXES.roundsPerSync,
  resume: BENCH_OUTPUT.resume,
  emitConfig: BENCH_OUTPUT.emitConfig,
};
/** These too, but llama-bench's rows are measured with settings. */
const OF_ARMS = {
  trees: BENCH_AXES.trees,
  policies: BENCH_AXES.policies,
  workload: BENCH_RUN.workload,
};
/** Costs are for policies, which these tables do not measure. */
const OF_POLICIES = { costs: COSTS.costs };
/** Points of growth and of rewrites have a number of rows instead, and nothing in them is drawn by the seed. */
const OF_STEPS = {
  seed: BENCH_RUN.seed,
  numSteps: BENCH_AXES.numSteps,
  simulateAcceptance: BENCH_RANDOM.simulateAcceptance,
};

type TableName = typeof BENCH_TABLE.table.choices[number];

/** Each table: the flags that it does not take, and the formats that it has. */
const TABLE_RULES: Readonly<
  Record<TableName, {
    readonly refused: Readonly<Record<string, { readonly flag: string }>>;
    readonly formats: readonly string[];
  }>
> = {
  profile: {
    refused: { ...OF_ARMS, ...OF_SETTINGS, ...OF_POLICIES },
    formats: ["md", "json"],
  },
  growth: {
    refused: { ...OF_ARMS, ...OF_SETTINGS, ...OF_POLICIES, ...OF_STEPS },
    formats: BENCH_OUTPUT.format.choices,
  },
  rewrites: {
    refused: { ...OF_ARMS, ...OF_SETTINGS, ...OF_POLICIES, ...OF_STEPS },
    formats: ["md", "csv", "json", "jsonl"],
  },
  "llama-bench": {
    refused: {
      batchSizes: BENCH_AXES.batchSizes,
      depths: BENCH_AXES.depths,
      ...OF_SETTINGS,
    },
    formats: ["md", "json", "jsonl"],
  },
};

/** Flags of `bench` that contradict each other. `given` has only what was typed, no defaults. */
export function refuseImpossibleBench(given: Readonly<Record<string, unknown>>): void {
  const { model, draft, workload, numSteps, trees } = given;
  const policies = policyTexts((given["policies"] ?? []) as readonly string[])
    .filter((text) => !draftsNothing(text));
  if (isRandom(model)) {
    if (draft !== undefined && draft !== "none" && !isRandom(draft)) {
      clash(`--draft ${draft}`, `--model ${model}`, "allowed is --draft random:CONFIG.json");
    }
    if (workload !== undefined && workload !== "random") {
      clash(
        `--model ${model}`,
        `--workload ${workload}`,
        "a model of random weights cannot read text; allowed is random",
      );
    }
  } else if (isRandom(draft)) {
    throw new UsageError(`Cannot use "--draft ${draft}": it needs --model random:CONFIG.json`);
  }
  const drafts = Array.isArray(numSteps) && numSteps.some((steps) => steps > 0)
    ? `--num-steps ${numSteps}`
    : trees !== undefined
    ? `--draft-tree ${trees}`
    : policies.length > 0
    ? `--policy ${given["policies"]}`
    : undefined;
  if (drafts !== undefined && !hasDraft(given)) {
    if (draft === "none") {
      clash(drafts, "--draft none", "there is no drafter; allowed is --num-steps 0");
    }
    const head = isRandom(model) ? "random:CONFIG.json" : "MODEL";
    clash(drafts, "--model", `it needs a draft; give --draft ${head}`);
  }
  refuseBesideTable(given);
  refuseImpossibleBackends(given);
  if (trees !== undefined && given["simulateAcceptance"] !== undefined) {
    clash("--draft-tree", "--simulate-acceptance", "acceptance is simulated for chains alone");
  }
  const { promptTokens, emitConfig, repeat } = given;
  if (promptTokens !== undefined && workload !== undefined && workload !== "random") {
    const why = "its prompts have their own lengths; allowed is --workload random";
    clash("--prompt-tokens", `--workload ${workload}`, why);
  }
  if (emitConfig !== undefined && typeof repeat === "number" && repeat < FEWEST_BLOCKS) {
    const why = `too few blocks to choose by; allowed is --repeat ${FEWEST_BLOCKS} or more`;
    clash("--emit-config", `--repeat ${repeat}`, why);
  }
  if (emitConfig !== undefined && given["simulateAcceptance"] !== undefined) {
    clash("--emit-config", "--simulate-acceptance", "a config needs measured acceptance");
  }
}

function refuseBesideTable(given: Readonly<Record<string, unknown>>): void {
  const { rows, format, webgpu } = given;
  const table = BENCH_TABLE.table.choices.find((name) => name === given["table"]);
  const points = table === "growth" || table === "rewrites";
  if (!points && rows !== undefined) {
    throw new UsageError('Cannot use "--rows": it needs --table growth or --table rewrites');
  }
  if (table === undefined) return;
  const { refused, formats } = TABLE_RULES[table];
  const refuse = (flag: string, why: string) => clash(flag, `--table ${table}`, why);
  for (const [key, { flag }] of Object.entries(refused)) {
    if (given[key] === undefined) continue;
    const why = table === "llama-bench"
      ? "its tests are pp512 and tg128"
      : "only a measurement of settings takes it";
    refuse(flag, why);
  }
  if (points) refuseSeveralModels(given);
  if (format !== undefined && !formats.some((known) => known === format)) {
    refuse(`--format ${format}`, `allowed is ${formats.join(", ")}`);
  }
  if (!points && Array.isArray(webgpu) && webgpu.length > 1) {
    refuse(`--webgpu ${webgpu.join(",")}`, "this table is measured on one WebGPU");
  }
}

/** A draft is of one model. */
function refuseSeveralModels(given: Readonly<Record<string, unknown>>): void {
  const { model, draft } = given;
  if (!String(model ?? "").includes(",") || draft === undefined || draft === "none") return;
  throw new UsageError(
    `Cannot use "--draft ${draft}" with several models: a draft belongs to one`,
  );
}
