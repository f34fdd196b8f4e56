/** `eyrie bench --webgpu builtin,dawn`: a process for each WebGPU, because two of them in one crash. */
import type { GrowthRow } from "../../measure/growth/row.ts";
import type { PageFacts } from "../../measure/page/parts.ts";
import type { RewriteRow } from "../../measure/rewrites/row.ts";
import type { BenchRow } from "../../measure/row.ts";
import { UsageError } from "../../errors.ts";
import { ADD_DAWN, addonPath, denoFolder } from "../../gpu/dawn.ts";
import { summary } from "../../measure/summary.ts";
import type { BenchOptions } from "../options/options.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import { optionalOutput, type OutputFile, writeAndShow } from "../terminal/output_file.ts";
import { type StatusLine, statusLine } from "../terminal/progress.ts";
import { warn } from "../terminal/warn.ts";
import type { BenchChild, StartChild } from "./child.ts";
import { formatRows } from "./files.ts";
import { writeGrowth } from "./growth.ts";
import { LEFT_OUT } from "./points.ts";
import { commandText } from "./results.ts";
import { writeRewrites } from "./rewrites.ts";
import { TURN_LINE } from "./turns.ts";

export interface BackendsContext {
  readonly start: StartChild;
  readonly io: Io;
  /** The arguments of `eyrie bench`. */
  readonly args: readonly string[];
  readonly version: string;
  /** GB/s that growth is compared with; undefined: each process measures it. */
  readonly bandwidth?: number | undefined;
  readonly now?: () => Date;
}

/** Flags that are not passed on to the processes, which get values of their own. */
const OWN_FLAGS = [
  "--webgpu",
  "--format",
  "--output",
  "--output-file",
  "--force",
  "--wide",
  "--json",
];

/**
 * Without Dawn there is nothing to compare. Here its package is only looked for: a process that loads it is started
 * later, and says so itself where it does not load.
 *
 * @param cache Deno's.
 * @throws UsageError
 */
export function refuseMissing(
  names: readonly string[],
  cache: string | undefined = denoFolder((name) => Deno.env.get(name), Deno.build.os),
): void {
  if (!names.includes("dawn") || addonPath(cache, Deno.build) !== undefined) return;
  throw new UsageError(
    `Cannot use "--webgpu ${names.join(",")}": Dawn is not in Deno's cache; "${ADD_DAWN}" adds it`,
  );
}

/**
 * Runs the same measurement on each WebGPU. The processes take turns block by block, so that a temporary
 * slowdown of the machine affects both. Where not all of them can be open at once, they run one after another.
 */
export async function runBackends(
  options: BenchOptions,
  context: BackendsContext,
): Promise<number> {
  const { io } = context;
  const { quiet, table } = options;
  // Points of these tables are no blocks, so taking turns gains nothing.
  const points = table === "growth" || table === "rewrites";
  const file = optionalOutput(options.output, options);
  const status = statusLine(io.stderr, { shown: !quiet });
  const names = options.webgpu;
  const runs = names.map((name) => openRun(name, { ...context, quiet, status }));
  const stop = () => runs.forEach((run) => run.interrupt());
  io.signal.addEventListener("abort", stop);
  try {
    if (points) await inOrder(runs);
    else await byTurns(runs, (line) => warn(line, { io, status, quiet }));
  } finally {
    io.signal.removeEventListener("abort", stop);
    stop();
    status.clear();
  }
  const facts = {
    command: commandText("bench", context.args),
    version: context.version,
    date: (context.now ?? (() => new Date()))(),
  };
  const rows = runs.flatMap((run) => run.rows);
  if (points) {
    if (options.format === "jsonl" && file === undefined) {
      for (const row of rows) io.stdout.write(`${JSON.stringify(row)}\n`);
    }
    const skipped = runs.flatMap((run) => run.skipped.map((text) => `${run.name}: ${text}`));
    if (table === "rewrites") {
      const stopped = io.signal.aborted || runs.some(({ code }) => code !== 0);
      writeRewrites({ rows: rows as RewriteRow[], skipped, stopped }, { options, file, io });
    } else {
      const given = context.bandwidth !== undefined;
      writeGrowth(rows as GrowthRow[], { options, file, io, facts: { ...facts, skipped }, given });
    }
  } else writeRows(rows as BenchRow[], { options, file, io, facts });
  if (io.signal.aborted) return INTERRUPTED;
  return runs.map(({ code }) => code ?? 1).find((code) => code !== 0) ?? 0;
}

function writeRows(
  rows: readonly BenchRow[],
  { options, file, io, facts }: {
    readonly options: BenchOptions;
    readonly file: OutputFile | undefined;
    readonly io: Io;
    readonly facts: PageFacts;
  },
): void {
  const { format = "md" } = options;
  if (rows.length === 0) return;
  const shown = file === undefined ? format : "md";
  const short = io.stdout.isTerminal && (file ?? options.format) === undefined;
  writeAndShow(file, {
    content: () => formatRows(rows, { format, facts }),
    show: () =>
      io.stdout.write(
        short
          ? summary(rows, { columns: io.stdout.columns() })
          : formatRows(rows, { format: shown, facts }),
      ),
  });
}

/** One WebGPU's process and what it has measured. */
interface Run {
  readonly name: string;
  readonly rows: unknown[];
  /** Points that it left out, and why. */
  readonly skipped: string[];
  /** Its exit code; undefined while it runs. */
  readonly code: number | undefined;
  /** Starts its process. After a failed one it starts again; nothing of the failed one is kept. */
  start(): void;
  /** Lets the process run until it waits again; false where it has ended. */
  turn(): Promise<boolean>;
  interrupt(): void;
}

function openRun(
  name: string,
  { start, io, args, quiet, status }: BackendsContext & {
    readonly quiet: boolean;
    readonly status: StatusLine;
  },
): Run {
  const rows: unknown[] = [];
  const skipped: string[] = [];
  const own = ["bench", ...without(args, OWN_FLAGS), "--webgpu", name, "--format", "jsonl"];
  let child: BenchChild | undefined;
  let code: number | undefined;
  let waits = false;
  return {
    name,
    rows,
    skipped,
    get code() {
      return code;
    },
    start() {
      code = undefined;
      rows.length = skipped.length = 0;
      child = start(own, (line) => {
        if (line.startsWith(LEFT_OUT)) skipped.push(line.slice(LEFT_OUT.length));
        tell(`${name}: ${line}`, { io, status, quiet });
      });
    },
    async turn() {
      if (child === undefined || code !== undefined) return false;
      if (waits) await child.go();
      waits = false;
      while (true) {
        const { value: line, done } = await child.lines.next();
        if (done) {
          code = await child.ended;
          return false;
        }
        if (line === TURN_LINE) {
          waits = true;
          return true;
        }
        if (line.startsWith("{")) rows.push(JSON.parse(line));
        else if (line !== "") tell(`${name}: ${line}`, { io, status, quiet }); // written by a library
      }
    },
    interrupt() {
      if (code === undefined) child?.interrupt();
    },
  };
}

async function byTurns(runs: readonly Run[], say: (line: string) => void): Promise<void> {
  const later: Run[] = [];
  for (const run of runs) {
    run.start();
    if (await run.turn() || run.code === 0 || runs[0] === run) continue;
    // There may not be enough memory for all of them at once.
    say(
      `${run.name} cannot be opened while the other WebGPU is open: it is measured afterwards, not in turns`,
    );
    later.push(run);
  }
  let going = runs.filter((run) => run.code === undefined);
  while (going.length > 0) {
    const next: Run[] = [];
    for (const run of going) if (await run.turn()) next.push(run);
    going = next;
  }
  await inOrder(later);
}

async function inOrder(runs: readonly Run[]): Promise<void> {
  for (const run of runs) {
    run.start();
    while (await run.turn());
  }
}

/** Shows a line of a process's standard error: progress as a bar, everything else unchanged. */
function tell(
  line: string,
  { io, status, quiet }: {
    readonly io: Io;
    readonly status: StatusLine;
    readonly quiet: boolean;
  },
): void {
  const [, name = "", done, total, text = ""] = /^(\w+): (\d+) of (\d+): (.*)$/.exec(line) ?? [];
  if (total !== undefined && io.stderr.isTerminal) {
    return status.bench({ done: Number(done), total: Number(total), text: `${name}, ${text}` });
  }
  status.clear();
  if (!quiet || total === undefined) io.stderr.write(`${line}\n`);
}

/** The flags of OWN_FLAGS that take no value. */
const SWITCHES = ["--force", "--wide", "--json"];

/** The arguments without these flags and their values. */
export function without(args: readonly string[], flags: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    const [name = arg] = arg.split("=");
    if (!flags.includes(name)) kept.push(arg);
    else if (name === arg && !SWITCHES.includes(name)) at++;
  }
  return kept;
}
