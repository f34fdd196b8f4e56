/** Rows in the format of llama-bench: `pp512` is prompt tokens per second, `tg128` output tokens per second. */
import { armsOf, type Plan } from "./plan.ts";
import type { BenchSession, Case, CellResult } from "./runner.ts";
import type { Workload } from "./workload/workload.ts";
import { type Spread, spread, sum } from "./statistics.ts";
import { type Column, markdownText, numbers, words } from "./table.ts";

/** The tokens of llama-bench's default tests. */
const [PROMPT_TOKENS, ANSWER_TOKENS] = [512, 128];

/** The two sweeps. The one of the prompt measures plain decoding only, because drafting begins after the prompt. */
export interface LlamaPlans {
  readonly prompt: Plan;
  readonly answer: Plan;
}

/** One line of the table. Its JSON is a public format. */
export interface LlamaRow {
  readonly model: string;
  readonly size: number;
  readonly params: number;
  readonly backend: string;
  readonly test: string;
  /** Tokens per second of each block. */
  readonly samples_ts: readonly number[];
  readonly avg_ts: number;
  readonly stddev_ts: number | null;
}

/** The plans for the settings and the workload of `plan`, with one request at a time. */
export function llamaPlans(plan: Plan, { name, sized }: Workload): LlamaPlans {
  const one = { batch: 1, temperature: 0, depth: 0 };
  const prompt: Case = {
    ...one,
    workload: "random",
    promptTokens: PROMPT_TOKENS,
    outputTokens: 1,
  };
  // llama-bench generates from nothing; one token is the least prompt.
  const answer: Case = {
    ...one,
    workload: name,
    ...sized ? { promptTokens: 1 } : {},
    outputTokens: ANSWER_TOKENS,
  };
  return {
    prompt: { ...plan, cases: [prompt], arms: armsOf({ numSteps: [0] }) },
    answer: { ...plan, cases: [answer] },
  };
}

/** Wraps a session. `cells` collects the results of its whole cells by setting, warm-up excluded. */
export function keepingCells(session: BenchSession): {
  readonly session: BenchSession;
  readonly cells: Map<unknown, CellResult[]>;
} {
  const cells = new Map<unknown, CellResult[]>();
  const runCell: BenchSession["runCell"] = async (spec, signal) => {
    const cell = await session.runCell(spec, signal);
    // An interrupted cell has a part of its answers.
    if (spec.repeat < 0 || signal.aborted) return cell;
    cells.set(spec.setting, [...cells.get(spec.setting) ?? [], cell]);
    return cell;
  };
  return { session: { ...session, runCell }, cells };
}

/**
 * One row for the prompt and one for the answers of each setting, plain decoding first.
 *
 * @param cells results by setting, as `keepingCells` collects them.
 */
export function llamaRows(
  { prompt, answer }: LlamaPlans,
  { subject, size = { bytes: 0, parameters: 0 } }: Pick<BenchSession, "subject" | "size">,
  cells: ReadonlyMap<unknown, readonly CellResult[]>,
): LlamaRow[] {
  const row = (test: string, setting: unknown, rate: typeof promptRate): LlamaRow[] => {
    const samples = (cells.get(setting) ?? []).map(rate).filter((one) => one !== undefined);
    if (samples.length === 0) return [];
    const { mean, sd }: Spread = spread(samples);
    return [{
      model: subject.model,
      size: size.bytes,
      params: size.parameters,
      backend: subject.device,
      test,
      samples_ts: samples,
      avg_ts: mean,
      stddev_ts: sd,
    }];
  };
  const [plain] = prompt.arms;
  return [
    ...row(`pp${PROMPT_TOKENS}`, plain?.setting, promptRate),
    ...answer.arms.filter((_, at) => at !== 1).flatMap(({ label, setting }, at) =>
      row(`tg${ANSWER_TOKENS}${at === 0 ? "" : `, ${label}`}`, setting, answerRate)
    ),
  ];
}

/** Prompt tokens per second until the first token of each answer. */
function promptRate({ requests }: Pick<CellResult, "requests">): number | undefined {
  return rateOf(requests.map(({ prompt }) => prompt));
}

/** Output tokens per second, without the first token of each answer. */
function answerRate({ requests }: Pick<CellResult, "requests">): number | undefined {
  return rateOf(requests.map(({ answer: { tokens, ms } }) => ({ tokens: tokens - 1, ms })));
}

/** Undefined where nothing took time: every answer of the cell is a single token. */
function rateOf(parts: readonly { readonly tokens: number; readonly ms: number }[]) {
  const seconds = sum(parts.map(({ ms }) => ms)) / 1000;
  return seconds > 0 ? sum(parts.map(({ tokens }) => tokens)) / seconds : undefined;
}

const COLUMNS: readonly Column<LlamaRow>[] = [
  words("model", ({ model }) => model),
  numbers("size", ({ size }) => size, sizeText),
  numbers("params", ({ params }) => params, paramsText),
  words("backend", ({ backend }) => backend),
  numbers("test", ({ test }) => test),
  numbers(
    "t/s",
    ({ avg_ts, stddev_ts }) =>
      stddev_ts === null ? avg_ts.toFixed(2) : `${avg_ts.toFixed(2)} ± ${stddev_ts.toFixed(2)}`,
  ),
];

/** The table of llama-bench; t/s is the mean ± the sample standard deviation. */
export function llamaMarkdown(rows: readonly LlamaRow[]): string {
  return `${markdownText(COLUMNS, rows)}\n`;
}

/** Formats a size like llama-bench: `3.56 GiB`. */
function sizeText(bytes: number): string {
  const gib = bytes / 2 ** 30;
  return gib >= 1 ? `${gib.toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(2)} MiB`;
}

/** `6.74 B`. */
function paramsText(count: number): string {
  return count >= 1e9 ? `${(count / 1e9).toFixed(2)} B` : `${(count / 1e6).toFixed(2)} M`;
}
