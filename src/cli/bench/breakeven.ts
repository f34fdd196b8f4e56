import {
  type BreakEvenReport,
  givenReport,
  keepingRounds,
  measuredReport,
} from "../../measure/breakeven/measured.ts";
import { breakEvenPage } from "../../measure/breakeven/page.ts";
import { breakEvenJson, breakEvenText } from "../../measure/breakeven/text.ts";
import { sharedFacts } from "../../measure/cases.ts";
import { armsOf, type Plan } from "../../measure/plan.ts";
import type { BenchRow } from "../../measure/row.ts";
import type { Case } from "../../measure/runner.ts";
import { sweep } from "../../measure/sweep.ts";
import { openWorkload } from "../../measure/workload/workload.ts";
import { UsageError } from "../../errors.ts";
import { drafterOf } from "../options/drafter_option.ts";
import { hasDraft } from "../options/measure/bench_flags.ts";
import { DEFAULT_PROMPT_TOKENS, measuredEngine, progressReporter, workloadName } from "./bench.ts";
import type { BreakevenOptions } from "../options/options.ts";
import { INTERRUPTED, unlessAborted } from "../terminal/io.ts";
import { optionalOutput, writeAndShow } from "../terminal/output_file.ts";
import { statusLine } from "../terminal/progress.ts";
import { readNamed } from "./files.ts";
import { type BenchContext, commandText } from "./results.ts";

/** Steps of the table where they are not given: for given terms, and measured. */
const [MAX_STEPS, MAX_MEASURED] = [16, 7];

/** `eyrie breakeven`: the equation's table or page. Exit code 1 where greedy outputs differ. */
export async function runBreakeven(
  options: BreakevenOptions,
  context: BenchContext,
): Promise<number> {
  const { io, args, version, now = () => new Date() } = context;
  const { format = "text" } = options;
  const file = optionalOutput(options.output, options);
  const report = options.measure ? await measured(options, context) : given(options);
  if (typeof report === "number") return report;
  const facts = { command: commandText("breakeven", args), date: now(), version };
  const text = {
    text: () => breakEvenText(report),
    json: () => breakEvenJson(report),
    html: () => breakEvenPage(report, facts),
  }[format]();
  writeAndShow(file, {
    content: () => text,
    show: () => io.stdout.write(file === undefined ? text : breakEvenText(report)),
  });
  return options.measure && io.signal.aborted ? INTERRUPTED : 0;
}

function stepsOf({ steps }: BreakevenOptions, most: number): number[] {
  if (steps === undefined) return Array.from({ length: most }, (_, at) => at + 1);
  return [...new Set(steps)].toSorted((a, b) => a - b);
}

function given(options: BreakevenOptions): BreakEvenReport {
  const { alpha, draftCost: draft, verifyCost: verify = 1 } = options;
  if (alpha === undefined || draft === undefined) {
    throw new UsageError('Cannot run "breakeven": give --alpha and --draft-cost, or --measure');
  }
  return givenReport(alpha, { draft, verify }, stepsOf(options, MAX_STEPS));
}

/** The report, or the exit code where there is none. */
async function measured(
  options: BreakevenOptions,
  { io, open }: BenchContext,
): Promise<BreakEvenReport | number> {
  if (!hasDraft({ ...options }) && drafterOf(options.drafter)?.name !== "NEXTN") {
    throw new UsageError('Cannot use "--measure" without a draft: give --draft MODEL');
  }
  const workload = openWorkload(workloadName(options), readNamed);
  const plan = planOf(options, workload);
  const status = statusLine(io.stderr, { shown: !options.quiet });
  const opening = open({
    workload,
    cases: plan.cases,
    settings: plan.arms.map(({ setting }) => setting),
    ...measuredEngine(options, { io, status }),
  });
  using opened = await unlessAborted(opening, io.signal).finally(status.clear);
  if (opened === undefined) return INTERRUPTED;
  const { session, rounds } = keepingRounds(opened);
  const report = progressReporter({ io, status, quiet: options.quiet });
  const rows: BenchRow[] = [];
  for await (const event of sweep(plan, session, { present: new Map(), signal: io.signal })) {
    report(event);
    if (event.kind === "different") return 1;
    if (event.kind === "rows") rows.push(...event.rows);
  }
  status.clear();
  // Ctrl+C leaves the blocks that are whole.
  if (rows.length === 0) return INTERRUPTED;
  const batch = ["batch", String(options.batchSize)] as const;
  return measuredReport(rows, rounds, [...sharedFacts(rows), batch], opened.costs);
}

/** One case, with every number of steps and plain decoding. */
function planOf(options: BreakevenOptions, workload: { name: string; sized: boolean }): Plan {
  const { batchSize: batch, outputTokens, repeat: blocks, seed } = options;
  const [promptTokens] = DEFAULT_PROMPT_TOKENS;
  const one: Case = {
    workload: workload.name,
    batch,
    outputTokens,
    temperature: 0,
    depth: 0,
    ...workload.sized ? { promptTokens } : {},
  };
  const numSteps = stepsOf(options, MAX_MEASURED);
  return { cases: [one], arms: armsOf({ numSteps }), blocks, seed };
}
