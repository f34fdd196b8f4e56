import { keepingCells, llamaMarkdown, llamaPlans, llamaRows } from "../../measure/llama.ts";
import { jsonLines } from "../../measure/row_file.ts";
import { sweep } from "../../measure/sweep.ts";
import { openWorkload } from "../../measure/workload/workload.ts";
import type { BenchOptions } from "../options/options.ts";
import { INTERRUPTED, unlessAborted } from "../terminal/io.ts";
import { optionalOutput, writeAndShow } from "../terminal/output_file.ts";
import { statusLine } from "../terminal/progress.ts";
import { measuredEngine, planOf, progressReporter, workloadName } from "./bench.ts";
import { readNamed } from "./files.ts";
import type { BenchContext } from "./results.ts";

/** `eyrie bench --table llama-bench`: the rows pp512 and tg128, tg128 with each setting too. */
export async function runLlama(options: BenchOptions, context: BenchContext): Promise<number> {
  const { io, open } = context;
  const { format = "md", quiet } = options;
  const workload = openWorkload(workloadName(options), readNamed);
  const plans = llamaPlans(planOf(options, workload), workload);
  const file = optionalOutput(options.output, options);
  const status = statusLine(io.stderr, { shown: !quiet });
  const opening = open({
    workload,
    cases: [...plans.prompt.cases, ...plans.answer.cases],
    settings: plans.answer.arms.map(({ setting }) => setting),
    ...measuredEngine(options, { io, status }),
  });
  using opened = await unlessAborted(opening, io.signal).finally(status.clear);
  if (opened === undefined) return INTERRUPTED;
  const { session, cells } = keepingCells(opened);
  const report = progressReporter({ io, status, quiet });
  const write = () => {
    const rows = llamaRows(plans, session, cells);
    if (rows.length === 0) return;
    const text = {
      md: () => llamaMarkdown(rows),
      json: () => `${JSON.stringify(rows, null, 2)}\n`,
      jsonl: () => jsonLines(rows),
    }[format as "md" | "json" | "jsonl"]();
    writeAndShow(file, {
      content: () => text,
      show: () => io.stdout.write(file === undefined ? text : llamaMarkdown(rows)),
    });
  };
  let different = false;
  try {
    for (const plan of [plans.prompt, plans.answer]) {
      if (io.signal.aborted) break;
      for await (const event of sweep(plan, session, { present: new Map(), signal: io.signal })) {
        report(event);
        different ||= event.kind === "different";
      }
      if (different) return 1;
    }
  } finally {
    // After an error too: the rows that were measured before it are shown.
    status.clear();
    if (!different) write();
  }
  return io.signal.aborted ? INTERRUPTED : 0;
}
