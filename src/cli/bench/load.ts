import { defined } from "../../defined.ts";
import { loadHtml } from "../../measure/load/page.ts";
import type { LoadArm } from "../../measure/load/plan.ts";
import type { LoadRow } from "../../measure/load/row.ts";
import type { OpenLoad, OpenLoadRequest } from "../../measure/load/session.ts";
import { type LoadEvent, measureLoad } from "../../measure/load/sweep.ts";
import { inPlanOrder } from "../../measure/load/summary.ts";
import { loadMarkdown, loadTerminal } from "../../measure/load/table.ts";
import type { PageFacts } from "../../measure/page/parts.ts";
import { jsonLines } from "../../measure/row_file.ts";
import { openWorkload } from "../../measure/workload/workload.ts";
import { clash } from "../options/clash.ts";
import { goodputOf } from "../options/measure/goodput_option.ts";
import type { LoadOptions } from "../options/options.ts";
import { roundsOf } from "../open/open.ts";
import { INTERRUPTED, type Io, unlessAborted } from "../terminal/io.ts";
import { isSameFile, optionalOutput, type OutputFile } from "../terminal/output_file.ts";
import { type StatusLine, statusLine } from "../terminal/progress.ts";
import { warn } from "../terminal/warn.ts";
import { measuredEngine, workloadName } from "./bench.ts";
import { readNamed } from "./files.ts";
import { loadPlan, planText } from "./load_plan.ts";
import { openRecorder } from "./record.ts";
import { commandText } from "./results.ts";

/** What `bench load` is given besides its options. */
export interface LoadContext {
  readonly open: OpenLoad;
  readonly io: Io;
  /** The arguments of `eyrie bench load`, for the page. */
  readonly args: readonly string[];
  readonly version: string;
  readonly now?: () => Date;
}

type LoadFormat = NonNullable<LoadOptions["format"]>;

/** `eyrie bench load`: measures, shows, writes. Exit code 1 where greedy outputs differ. */
export async function runLoad(options: LoadOptions, context: LoadContext): Promise<number> {
  const { io, now = () => new Date() } = context;
  const { maxBatch, quiet } = options;
  const workload = openWorkload(workloadName(options), readNamed);
  const plan = loadPlan(options, workload);
  const { output, record } = options;
  if (isSameFile(output, record)) {
    clash(`--recording ${record}`, `--output ${output}`, "both name one file");
  }
  const file = optionalOutput(output, options);
  const recorder = openRecorder(record, { plan, force: options.force });
  const status = statusLine(io.stderr, { shown: !quiet });
  if (options.trace !== undefined && !workload.sized) {
    warn(
      `prompts are those of ${workload.name} and do not have the lengths of the trace; those of --workload random do`,
      { io, status, quiet },
    );
  }
  // A server runs with its own settings, so there is one arm.
  const arms = options.remote === undefined ? plan.arms.length : 1;
  if (!quiet) io.stderr.write(`${planText(plan, arms)}\n`);
  const engine = measuredEngine(options, { io, status });
  const request = { ...engine, plan, limits: { ...engine.limits, ...sizes(options) } };
  using session = await unlessAborted(context.open(request), io.signal).finally(status.clear);
  if (session === undefined) return INTERRUPTED;
  const report = progressReporter({ io, status, quiet });
  let different = false;
  const { served } = session;
  const measured = served === undefined ? plan : { ...plan, arms: [served.arm] };
  const results = openLoadResults(options, file, { ...context, arms: measured.arms });
  await measureLoad(measured, session, {
    maxBatch,
    now,
    signal: io.signal,
    slo: goodputOf(options.goodput) ?? {},
    onEvent(event) {
      report(event);
      if (event.kind === "row") {
        results.add(event.row);
        if (recorder.add(event.spec, event.result)) return;
        warn(`${event.row.label} had no rounds: nothing is recorded of it`, { io, status, quiet });
      }
      if (event.kind === "different") different = true;
    },
  }).catch((error) => {
    // Write the rows that were measured before the error.
    status.clear();
    results.end();
    throw error;
  });
  status.clear();
  if (io.signal.aborted) {
    warn("stopped: the measurement that was running is left out", { io, status, quiet });
  }
  results.end();
  if (different) return 1;
  return io.signal.aborted ? INTERRUPTED : 0;
}

function sizes({ roundsPerSync, ...options }: LoadOptions): OpenLoadRequest["limits"] {
  const { maxBatch, maxKvTokens, gpuMemoryUtilization, maxBatchedRows, sloItlMs, contextLength } =
    options;
  return {
    maxBatch,
    ...defined({ maxKvTokens, gpuMemoryUtilization, maxBatchedRows, sloItlMs, contextLength }),
    ...roundsPerSync === undefined ? {} : { roundsPerSync: roundsOf(roundsPerSync) },
  };
}

/** Keeps the rows and writes them: JSONL row by row, files after each row, the rest at the end. */
function openLoadResults(
  { format: given }: LoadOptions,
  file: OutputFile | undefined,
  { io: { stdout }, args, version, now = () => new Date(), arms }: LoadContext & {
    readonly arms: readonly LoadArm[];
  },
): { add(row: LoadRow): void; end(): void } {
  const format = given ?? "md";
  const facts = { command: commandText("bench load", args), date: now(), version };
  let rows: readonly LoadRow[] = [];
  const text = (format: LoadFormat) => formatRows(rows, format, facts);
  const streams = format === "jsonl" && file === undefined;
  return {
    add(row) {
      rows = inPlanOrder([...rows, row], arms);
      if (streams) stdout.write(formatRows([row], "jsonl", facts));
      file?.write(text(format));
    },
    end() {
      if (rows.length === 0 || streams) return;
      const shown = file === undefined ? format : "md";
      const narrow = stdout.isTerminal && (given === undefined || shown !== format);
      stdout.write(narrow ? loadTerminal(rows, { columns: stdout.columns() }) : text(shown));
    },
  };
}

function formatRows(rows: readonly LoadRow[], format: LoadFormat, facts: PageFacts): string {
  switch (format) {
    case "md":
      return loadMarkdown(rows);
    case "json":
      return `${JSON.stringify(rows, null, 1)}\n`;
    case "jsonl":
      return jsonLines(rows);
    case "html":
      return loadHtml(rows, facts);
  }
}

/** Says on stderr how far the run is: a bar on a terminal, a line a measurement elsewhere. */
function progressReporter(
  { io, status, quiet }: { io: Io; status: StatusLine; quiet: boolean },
): (event: LoadEvent) => void {
  const line = (text: string) => {
    if (!quiet && !io.stderr.isTerminal) io.stderr.write(`${text}\n`);
  };
  let progress = { done: 0, total: 0 };
  return (event) => {
    switch (event.kind) {
      case "warm-up":
        status.bench({ ...progress, text: `warming up ${event.label}` });
        return line(`warming up: ${event.one.name}, ${event.label}`);
      case "requests": {
        const { done, total, one, label } = event;
        progress = { done, total };
        return status.bench({ done, total, text: `${one.name}, ${label}` });
      }
      case "row": {
        const { load, block, label, output_throughput, p50_e2el_ms, failed } = event.row;
        return line(
          `${load}, block ${block + 1}, ${label}: ${output_throughput.toFixed(1)} tokens/s, ` +
            `end to end p50 ${(p50_e2el_ms ?? 0).toFixed(0)} ms${
              failed > 0 ? `, ${failed} failed` : ""
            }`,
        );
      }
      case "different":
        status.clear();
        io.stderr.write(`FAILED: ${event.message}\n`);
    }
  };
}
