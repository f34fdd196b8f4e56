import { defined } from "../../defined.ts";
import { combinations } from "../../measure/axes.ts";
import { emitConfig } from "../../measure/emit_config.ts";
import { armsOf, caseText, type Plan } from "../../measure/plan.ts";
import type { BenchRow } from "../../measure/row.ts";
import type { EngineOptions } from "../../engine/options.ts";
import type { BenchRequest, Case } from "../../measure/runner.ts";
import { sweep, type SweepEvent } from "../../measure/sweep.ts";
import { openWorkload, type Workload } from "../../measure/workload/workload.ts";
import { UsageError } from "../../errors.ts";
import { openRowFile, readNamed } from "./files.ts";
import { clash } from "../options/clash.ts";
import { drafterOf, MODEL_DRAFTERS } from "../options/drafter_option.ts";
import { oneBackend } from "../options/measure/backend_flags.ts";
import { hasDraft } from "../options/measure/bench_flags.ts";
import { isRandom, randomConfig } from "../options/measure/random_model.ts";
import { isSameFile, optionalOutput, type OutputFile } from "../terminal/output_file.ts";
import { type BenchContext, openResults } from "./results.ts";
import { INTERRUPTED, type Io, unlessAborted } from "../terminal/io.ts";
import { roundsOf } from "../open/open.ts";
import { namedTree } from "../open/speculation.ts";
import { policyOf, policyTexts } from "../options/policy_option.ts";
import { ROUNDS } from "../options/option_flight.ts";
import type { BenchOptions, MeasuredOptions } from "../options/options.ts";
import { type StatusLine, statusLine } from "../terminal/progress.ts";
import { warn } from "../terminal/warn.ts";

const DEFAULT_STEPS = [0, 1, 3, 7];
export const DEFAULT_PROMPT_TOKENS = [128] as const;

/** `eyrie bench`: measures, shows, writes. Exit code 1 where greedy outputs differ. */
export async function runBench(
  options: BenchOptions,
  context: BenchContext,
): Promise<number> {
  const { io } = context;
  const workload = openWorkload(workloadName(options), readNamed);
  const plan = planOf(options, workload);
  const config = configFile(options);
  const file = resultFile(options);
  const rowFile = openRowFile(options.resume);
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const request = requestOf(options, { plan, workload, io, status });
  using session = await unlessAborted(context.open(request), io.signal).finally(status.clear);
  if (session === undefined) return INTERRUPTED;
  const results = openResults(options, { context, plan, session, file, earlier: rowFile.earlier });
  const report = progressReporter({ io, status, quiet: options.quiet });
  let different = false;
  const { turn } = context;
  const limits = { present: rowFile.earlier, signal: io.signal, ...turn ? { turn } : {} };
  try {
    for await (const event of sweep(plan, session, limits)) {
      report(event);
      if (event.kind === "different") different = true;
      if (event.kind !== "rows") continue;
      try {
        rowFile.add(event.rows);
      } finally {
        results.add(event.rows);
      }
    }
  } finally {
    // After an error too: the cases that were measured before it are shown.
    status.clear();
    results.end();
  }
  if (different) return 1;
  if (io.signal.aborted) return INTERRUPTED;
  if (config !== undefined) writeConfig(config, results.rows(), io);
  return 0;
}

/** The file of `--emit-config`, which replaces neither the results nor the rows. @throws UsageError */
function configFile(options: BenchOptions): OutputFile | undefined {
  const { emitConfig, output, resume } = options;
  for (const [flag, path] of [["--output", output], ["--resume", resume]] as const) {
    if (!isSameFile(emitConfig, path)) continue;
    clash(`--emit-config ${emitConfig}`, `${flag} ${path}`, "both name one file");
  }
  return optionalOutput(emitConfig, options);
}

/** The file of `--output`. Undefined also where `--resume` names it, and so writes the rows. @throws UsageError */
function resultFile(options: BenchOptions): OutputFile | undefined {
  const { output, resume, format } = options;
  if (!isSameFile(output, resume)) return optionalOutput(output, options);
  if (format === "jsonl") return undefined;
  throw new UsageError(
    `Cannot use "--resume ${resume}" with "--output ${output}": the file has a row on each line; ` +
      `name another or give --format jsonl`,
  );
}

/** What `--workload` is where it is not given. */
export function workloadName(
  { workload, model }: Pick<BenchOptions, "workload" | "model">,
): string {
  return workload ?? (isRandom(model) ? "random" : "fledgling:all");
}

/** What the axes ask to be measured. @throws UsageError */
export function planOf(options: BenchOptions, workload: Workload): Plan {
  const { promptTokens, batchSizes = [1], outputTokens, temperatures, depths = [0] } = options;
  const roundsPerSync = roundsAxis(options.roundsPerSync);
  if (promptTokens !== undefined && !workload.sized) {
    throw new UsageError(
      `Cannot use "--prompt-tokens" with "--workload ${workload.name}": its prompts have their own lengths; ` +
        `allowed is --workload random`,
    );
  }
  const numSteps = options.numSteps ?? (hasDraft({ ...options }) ? DEFAULT_STEPS : [0]);
  const cases = combinations<{ [K in keyof Required<Case>]: Case[K] }>({
    workload: [workload.name],
    promptTokens: workload.sized ? promptTokens ?? DEFAULT_PROMPT_TOKENS : [undefined],
    outputTokens,
    temperature: temperatures,
    depth: depths,
    roundsPerSync,
    batch: batchSizes,
  }).map(({ promptTokens, roundsPerSync, ...rest }): Case => ({
    ...rest,
    ...defined({ promptTokens, roundsPerSync }),
  }));
  const trees = options.trees.map(namedTree);
  const policies = policyTexts(options.policies)
    .map((text) => [text, policyOf(text, "--policy")] as const);
  const arms = armsOf({ numSteps, trees, policies });
  return { cases, arms, blocks: options.repeat, seed: options.seed };
}

/** @throws UsageError for a value that `--rounds-per-sync` of other commands would refuse too. */
function roundsAxis(names: readonly string[]): readonly Case["roundsPerSync"][] {
  const { choices } = ROUNDS.roundsPerSync;
  const refused = names.find((name) => !choices.some((choice) => choice === name));
  if (refused !== undefined) {
    throw new UsageError(
      `Cannot use "--rounds-per-sync ${refused}": allowed is some of ${choices.join(", ")}`,
    );
  }
  return names.length === 0 ? [undefined] : names.map(roundsOf);
}

function requestOf(
  options: BenchOptions,
  { plan, workload, io, status }: { plan: Plan; workload: Workload; io: Io; status: StatusLine },
): BenchRequest {
  return {
    workload,
    cases: plan.cases,
    settings: plan.arms.map(({ setting }) => setting),
    ...measuredEngine(options, { io, status }),
  };
}

/** The options of the engine that the flags name. */
export function measuredEngine(
  options:
    & Omit<MeasuredOptions, "simulateAcceptance" | "webgpu">
    & Partial<Pick<MeasuredOptions, "simulateAcceptance">>
    & {
      readonly webgpu?: string | readonly string[] | undefined;
      readonly costs?: string | undefined;
      readonly quiet: boolean;
    },
  { io, status }: { io: Io; status: StatusLine },
): EngineOptions {
  const { donor, draftRopeTheta, adapter, precision, simulateAcceptance, costs } = options;
  const algorithm = drafterOf(options.drafter, MODEL_DRAFTERS)?.name;
  const webgpu = oneBackend(options.webgpu);
  const { quantize, kvDtype, autotune = "on" } = options;
  const quantizeDraft = options.quantizeDraft || undefined;
  const target = randomConfig(options.model);
  const random = target === undefined
    ? undefined
    : { target, ...defined({ draft: randomConfig(options.draft) }) };
  const { model, draft } = random ? {} : options;
  return {
    model: defined({
      model,
      draft,
      donor,
      draftRopeTheta,
      algorithm,
      quantize,
      quantizeDraft,
      random,
    }),
    device: { ...defined({ adapter, webgpu, precision, costs }), autotune },
    limits: defined({ kvDtype }),
    speculation: defined({ simulateAcceptance }),
    hooks: {
      onProgress: status.load,
      onWarning: (line) => warn(line, { io, status, quiet: options.quiet }),
    },
  };
}

/** Says on stderr how far the sweep is: a bar on a terminal, a line a cell elsewhere. */
export function progressReporter(
  { io, status, quiet }: { io: Io; status: StatusLine; quiet: boolean },
): (event: SweepEvent) => void {
  const line = (text: string) => {
    if (!quiet && !io.stderr.isTerminal) io.stderr.write(`${text}\n`);
  };
  let progress = { done: 0, total: 0 };
  return (event: SweepEvent) => {
    switch (event.kind) {
      case "warm-up":
        status.bench({ ...progress, text: `warming up batch ${event.one.batch}` });
        return line(`warming up: ${caseText(event.one)}`);
      case "warm":
        return line(`warm after ${event.seconds.toFixed(1)} s, passes: ${event.passes}`);
      case "cell": {
        const { done, total, one, label, block, tokensPerSecond } = event;
        progress = { done, total };
        status.bench({ done, total, text: `batch ${one.batch}, ${label}` });
        return line(
          `${done} of ${total}: ${caseText(one)}, block ${block + 1}, ${label}: ` +
            `${tokensPerSecond.toFixed(1)} tokens/s`,
        );
      }
      case "rows":
        if (!event.complete) {
          warn("stopped: rows of the last case have fewer blocks", { io, status, quiet });
        }
        return;
      case "different":
        status.clear();
        io.stderr.write(`FAILED: ${event.message}\n`);
    }
  };
}

function writeConfig(file: OutputFile, rows: readonly BenchRow[], io: Io): void {
  const { path } = file;
  const config = emitConfig(rows);
  file.write(`${JSON.stringify(config, null, 2)}\n`);
  const slots = Object.entries(config)
    .map(([batch, { candidate_steps, candidate_trees }]) =>
      `${
        candidate_trees?.map((tree) => tree.join(":")) ?? candidate_steps.join()
      } at batch ${batch}`
    );
  io.stderr.write(
    `wrote ${path}, steps ${
      slots.join(", ")
    }: --policy ema:config=${path} uses it in generate, chat and serve, ` +
      `bench --policy ema:config=${path} measures it\n`,
  );
}
