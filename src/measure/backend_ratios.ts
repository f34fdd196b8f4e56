import { variedFacts } from "./cases.ts";
import { digits, ratioText } from "./formats.ts";
import type { BenchRow } from "./row.ts";
import { pairedRatio, type Ratio } from "./statistics.ts";
import { type Column, numbers, words } from "./table.ts";

/** The speeds of one setting in one case on both WebGPU implementations, which measured their blocks in turns. */
export interface BackendRatio {
  /** The facts in which the case differs from the others: `depth 512`; empty where there is one case. */
  readonly place: string;
  readonly batch: number;
  readonly setting: string;
  /** Output tokens per second on each implementation, in the order of `BackendRatios.names`. */
  readonly tokensPerSecond: readonly [number, number];
  /** Tokens/s of the second implementation over those of the first in the same block: geometric mean and t interval. */
  readonly over: Ratio;
}

/** All settings that were measured on both of two WebGPU implementations. */
export interface BackendRatios {
  readonly names: readonly [string, string];
  readonly ratios: readonly BackendRatio[];
}

/**
 * The WebGPU implementation that a row was measured on. Rows from before there were two have no such field: Deno's own.
 */
function webGpuOf({ webgpu = "builtin" }: Pick<BenchRow, "webgpu">): string {
  return webgpu;
}

/** Pairs the rows of two WebGPU implementations. Undefined where the rows are not from exactly two. */
export function backendRatios(rows: readonly BenchRow[]): BackendRatios | undefined {
  const names = [...new Set(rows.map(webGpuOf))];
  const [first, second] = names;
  if (first === undefined || second === undefined || names.length > 2) return undefined;
  const own = rows.filter((row) => webGpuOf(row) === first);
  const others = rows.filter((row) => webGpuOf(row) === second);
  const facts = variedFacts(own);
  const ratios = own.flatMap((row): BackendRatio[] => {
    const other = others.find((each) => sameButBackend(row, each));
    if (other === undefined) return [];
    const place = facts.map(([title, of]) => `${title} ${of(row)}`).join(", ");
    const { batch, setting } = row;
    const [a, b] = [row.tokens_per_second, other.tokens_per_second];
    const blocks = Math.min(a.samples.length, b.samples.length);
    const logs = Array.from(
      { length: blocks },
      (_, block) => Math.log((b.samples[block] ?? NaN) / (a.samples[block] ?? NaN)),
    );
    return [{
      place,
      batch,
      setting,
      tokensPerSecond: [a.mean, b.mean],
      over: pairedRatio(logs),
    }];
  });
  return { names: [first, second], ratios };
}

function sameButBackend(a: BenchRow, b: BenchRow): boolean {
  const key = (row: BenchRow) =>
    JSON.stringify([
      ...[row.model, row.draft, row.workload, row.batch, row.prompt_tokens, row.output_tokens],
      ...[row.temperature, row.depth, row.rounds_per_sync, row.seed, row.setting],
    ]);
  return key(a) === key(b);
}

/** The columns of a table with both WebGPUs side by side. */
export function ratioColumns(
  { names: [first, second], ratios }: BackendRatios,
): Column<BackendRatio>[] {
  const columns: Column<BackendRatio>[] = [
    words("case", ({ place }) => place),
    numbers("batch", ({ batch }) => batch),
    words("setting", ({ setting }) => setting),
    numbers(`${first} tokens/s`, ({ tokensPerSecond: [speed] }) => speed, digits),
    numbers(`${second} tokens/s`, ({ tokensPerSecond: [, speed] }) => speed, digits),
    numbers(`${second} over ${first} [95 %]`, ({ over }) => over, ratioText),
  ];
  return ratios.some(({ place }) => place !== "") ? columns : columns.slice(1);
}

/** One line for each setting: `batch 1, plain: dawn 2311 tokens/s, 1.03x builtin [1.01, 1.05]`. */
export function ratioLines({ names: [first, second], ratios }: BackendRatios): string[] {
  return ratios.map(({ place, batch, setting, tokensPerSecond, over }) =>
    [...place === "" ? [] : [place], `batch ${batch}`, setting].join(", ") +
    `: ${second} ${digits(tokensPerSecond[1])} tokens/s, ${ratioText(over, `x ${first}`)}`
  );
}
