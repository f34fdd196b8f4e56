import type { Plan } from "../../measure/plan.ts";
import { type BenchRow, keyOfRow, rowKey, withGaps } from "../../measure/row.ts";
import type { BenchSession, Case, OpenBench } from "../../measure/runner.ts";
import { summary } from "../../measure/summary.ts";
import { verdictLines } from "../../measure/verdict_text.ts";
import { type BenchFormat, formatRows } from "./files.ts";
import type { Io } from "../terminal/io.ts";
import { type OutputFile, writeAndShow } from "../terminal/output_file.ts";
import type { BenchOptions } from "../options/options.ts";

/** What `bench` is given besides its options. */
export interface BenchContext {
  readonly open: OpenBench;
  readonly io: Io;
  /** The arguments of `eyrie bench`, for the page. */
  readonly args: readonly string[];
  readonly version: string;
  readonly now?: () => Date;
  /** Where another process measures between the blocks, see turns.ts. */
  readonly turn?: () => Promise<void>;
}

/** The rows of a sweep and where they go. */
export interface Results {
  /** Rows of the plan, earlier ones too, in its order. */
  rows(): readonly BenchRow[];
  add(rows: readonly BenchRow[]): void;
  end(): void;
}

/** Keeps the rows and writes them: JSONL row by row, files after each case, the rest at the end. */
export function openResults(
  options: BenchOptions,
  { context, plan, session, file: written, earlier }: {
    context: BenchContext;
    plan: Plan;
    session: BenchSession;
    /** The file of `--output`, unless `--resume` already adds the rows to it. */
    file: OutputFile | undefined;
    earlier: ReadonlyMap<string, BenchRow>;
  },
): Results {
  const { io, args, version, now = () => new Date() } = context;
  const { output: file, format = "md" } = options;
  const { stdout, stderr } = io;
  const short = stdout.isTerminal && (file !== undefined || options.format === undefined);
  const facts = { command: commandText("bench", args), date: now(), version };
  const place = ({ label }: { label: string }, one: Case) =>
    rowKey(session.subject, one, { label, seed: plan.seed });
  const found = new Map(earlier);
  // A row that was measured later may be the best of its case, which the gaps of earlier ones do not know.
  const rows = () =>
    plan.cases.flatMap((one) =>
      withGaps(plan.arms.flatMap((arm) => found.get(place(arm, one)) ?? []))
    );
  const text = (format: BenchFormat) => formatRows(rows(), { format, facts });
  const streams = format === "jsonl" && file === undefined;
  const tellVerdicts = () => {
    if (!options.quiet) stderr.write(verdictLines(rows()).map((line) => `${line}\n`).join(""));
  };
  const show = () => {
    if (short) return stdout.write(summary(rows(), { columns: stdout.columns() }));
    const shown = file === undefined ? format : "md";
    if (!streams) stdout.write(text(shown));
    // Only the Markdown table contains the verdicts.
    if (shown !== "md" && context.turn === undefined) tellVerdicts();
  };
  if (streams) stdout.write(text("jsonl"));
  return {
    rows,
    add(fresh) {
      for (const row of fresh) found.set(keyOfRow(row), row);
      if (streams) stdout.write(formatRows(fresh, { format, facts }));
      written?.write(text(format));
    },
    end() {
      if (rows().length === 0) return;
      writeAndShow(written, { content: () => text(format), show });
    },
  };
}

/** The command as a shell takes it. */
export function commandText(name: string, args: readonly string[]): string {
  const quoted = args.map((arg) =>
    /^[\w./:,=@%+-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`
  );
  return ["eyrie", name, ...quoted].join(" ");
}
