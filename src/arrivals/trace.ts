import { UsageError } from "../errors.ts";
import { type Arrival, arrivalSeed, type Extent } from "./arrival.ts";

export interface TraceOptions extends Extent {
  /** Where the text is from, for messages. */
  readonly path: string;
  /** u32. */
  readonly seed: number;
  /** Seconds of the run for each second of the trace: 10 replays it ten times slower. */
  readonly timeScale?: number;
}

const COLUMNS = "TIMESTAMP,ContextTokens,GeneratedTokens";
const STAMP =
  /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:Z|([+-])(\d\d):?(\d\d))?$/;

interface Row {
  /** Whole seconds since 1970 and the fraction: one float could not hold both exactly. */
  readonly second: number;
  readonly fraction: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/**
 * Arrivals of a trace in the format of Azure's LLM inference traces (Azure/AzurePublicDataset): a
 * line `TIMESTAMP,ContextTokens,GeneratedTokens`, then one a request, as
 * `2023-11-16 18:15:46.6805900,374,44`. The first arrives at 0; requests of one time keep their
 * order.
 *
 * @throws UsageError with the number of the line that cannot be read.
 */
export function readTrace(text: string, options: TraceOptions): Arrival[] {
  const { path, seed, timeScale = 1, requests = Infinity, durationMs = Infinity } = options;
  const [header = "", ...lines] = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (header.trim() !== COLUMNS) {
    throw new UsageError(`Cannot use "--trace ${path}": line 1 is not ${COLUMNS}`);
  }
  const rows = lines.flatMap((line, i) => line.trim() === "" ? [] : [readRow(line, i + 2, path)])
    .toSorted((a, b) => a.second - b.second || a.fraction - b.fraction);
  const [first] = rows;
  if (first === undefined) throw new UsageError(`Cannot use "--trace ${path}": it has no requests`);
  return rows.map(({ second, fraction, promptTokens, outputTokens }, n) => ({
    atMs: ((second - first.second) + (fraction - first.fraction)) * 1000 * timeScale,
    promptTokens,
    outputTokens,
    seed: arrivalSeed(seed, n),
  })).slice(0, requests).filter(({ atMs }) => atMs < durationMs);
}

function readRow(line: string, number: number, path: string): Row {
  const refuse = (why: string) =>
    new UsageError(`Cannot use "--trace ${path}": line ${number}, "${line}": ${why}`);
  const cells = line.split(",").map((cell) => cell.trim());
  const [stamp = "", context = "", generated = ""] = cells;
  if (cells.length !== 3) throw refuse(`it has ${cells.length} columns, not 3`);
  const time = readStamp(stamp);
  if (time === undefined) throw refuse("its time is not as 2023-11-16 18:15:46.6805900");
  const promptTokens = readCount(context);
  const outputTokens = readCount(generated);
  if (promptTokens === undefined || outputTokens === undefined) {
    throw refuse("tokens are integers from 1");
  }
  return { ...time, promptTokens, outputTokens };
}

function readCount(text: string): number | undefined {
  const count = /^\d+$/.test(text) ? Number(text) : 0;
  return count >= 1 && Number.isSafeInteger(count) ? count : undefined;
}

function readStamp(
  text: string,
): { readonly second: number; readonly fraction: number } | undefined {
  const found = STAMP.exec(text);
  if (found === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found.slice(1, 7)
    .map(Number);
  const ms = Date.UTC(year, month - 1, day, hour, minute, second);
  // Date.UTC takes February 30 for March 1.
  const kept = new Date(ms).toISOString().slice(0, 19) === text.slice(0, 19).replace(" ", "T");
  if (!kept) return undefined;
  const zone = Number(found[9] ?? 0) * 3600 + Number(found[10] ?? 0) * 60;
  return {
    second: ms / 1000 - (found[8] === "-" ? -zone : zone),
    fraction: Number(found[7] ?? 0),
  };
}
