/** Attention of one query over the cells of its slot's pages, in float64. */
import { PAGE } from "../../src/model/device_layout.ts";

/** What a row says of the cells that it sees; see `Row` of kernels/lib/rows.wgsl. */
export interface SeeingRow {
  readonly slot: number;
  readonly position: number;
  readonly base: number;
  /** 0: padding, which sees nothing. */
  readonly live: number;
  /** Where logical cells `base`, `base` + 1, ... lie, less `base`. */
  readonly path: readonly number[];
}

/** Keys and values, [pages, kvHeads, PAGE, headDim], and where the pages of the slots are. */
export interface StoredCells {
  readonly keys: Float32Array;
  readonly values: Float32Array;
  /** [slots, tablePages] */
  readonly pages: readonly number[];
  readonly tablePages: number;
  readonly kvHeads: number;
}

/** Where the cells that a row sees lie in its slot, in their order. */
export function visible(
  { position, base, live, path }: SeeingRow,
  window: number = Infinity,
): number[] {
  const cells = Array.from({ length: live ? position + 1 : 0 }, (_, cell) => cell);
  return cells.filter((cell) => cell > position - window)
    .map((cell) => cell < base ? cell : base + (path[cell - base] ?? NaN));
}

/**
 * `sum_j softmax_j(score(q k_j)) v_j` over the cells j that the row sees, [headDim]: the output of one head whose keys
 * and values are those of `kvHead`. The score is q k_j times `scale`, with a soft `cap`; a `sink` is a logit without a
 * value.
 */
export function attended(
  row: SeeingRow,
  q: Float32Array,
  kvHead: number,
  { keys, values, pages, tablePages, kvHeads }: StoredCells,
  { scale = 1 / Math.sqrt(q.length), cap, window, sink = -Infinity }: {
    readonly scale?: number | undefined;
    readonly cap?: number | undefined;
    readonly window?: number | undefined;
    readonly sink?: number | undefined;
  },
): number[] {
  const at = visible(row, window).map((cell) => {
    const page = pages[row.slot * tablePages + Math.floor(cell / PAGE)] ?? NaN;
    return ((page * kvHeads + kvHead) * PAGE + cell % PAGE) * q.length;
  });
  const scores = at.map((first) => {
    const dot = q.reduce((sum, value, d) => sum + value * (keys[first + d] ?? NaN), 0);
    return cap ? cap * Math.tanh(dot * scale / cap) : dot * scale;
  });
  const peak = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - peak));
  const total = weights.reduce((sum, weight) => sum + weight, Math.exp(sink - peak));
  return Array.from(q, (_, d) =>
    weights.reduce((sum, weight, j) => {
      return sum + weight / total * (values[(at[j] ?? NaN) + d] ?? NaN);
    }, 0));
}
