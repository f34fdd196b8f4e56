import { MEASURED_ROWS } from "../../../kernels/matmul/matmul_tune.ts";
import { shapeKey, splitKOf } from "../../../kernels/matmul/matmul_shape.ts";
import { bytesOf } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import type { Launches, Tuning } from "../../gpu/tuning.ts";
import type { DraftWeights } from "../../model/weights/draft_weights.ts";
import type {
  AttentionWeights,
  DecoderLayer,
  LatentProjections,
} from "../../model/weights/layer_weights.ts";
import type { LoadedWeights } from "../device/models.ts";

/** A matrix that a forward multiplies by, and its split-K: the number of ranges of k with sums of their own. */
export interface Matmul {
  readonly matrix: Matrix;
  readonly splitK: number;
}

/** Matmuls of one shape: what one launch is measured for, on all of them in turn. */
export interface MatmulGroup {
  /** See `shapeKey`. */
  readonly key: string;
  readonly matmuls: readonly [Matmul, ...Matmul[]];
}

/**
 * Every matrix of target and draft that plans give to `matmul`, in no order; those of experts are listed separately.
 */
export function matmulsOf({ target, draft, standalone }: LoadedWeights, tuning: Tuning): Matmul[] {
  const { head, layers } = target.weights;
  // The draft's head may be the target's.
  const own = standalone?.weights.model;
  const heads = new Set([
    ...[head, ...own ? [own.head] : []],
    ...draft ? [draft.weights.head] : [],
  ]);
  const every = [...layers, ...own?.layers ?? [], ...draft ? [draft.weights.layer] : []];
  const all = every.map(layerMatrices);
  const routers = every.flatMap(({ attention, mlp }) => [
    ...mlp.kind === "mixture" ? [mlp.router] : [],
    ...attention.kind === "delta" ? [attention.rates] : [],
  ]);
  return [
    ...draft ? [fcOf(draft.weights, tuning)] : [],
    ...[...heads, ...routers, ...all.flatMap(({ plain }) => plain)].map((matrix) => ({
      matrix,
      splitK: 1,
    })),
    ...all.flatMap(({ ends }) => ends)
      .map((matrix) => ({ matrix, splitK: splitKOf(matrix, tuning) })),
  ];
}

/** The draft's `fc`: it is split-K only if a norm pair follows (EAGLE-3), which adds the sums of the ranges of k. */
function fcOf({ fc: matrix, fcBias, norms }: DraftWeights, tuning: Tuning): Matmul {
  return { matrix, splitK: norms && !fcBias ? splitKOf(matrix, tuning) : 1 };
}

/** Matmuls by shape, the shapes that take most of a forward first. */
export function groupMatmuls(matmuls: readonly Matmul[]): MatmulGroup[] {
  const bytes = ({ matmuls }: MatmulGroup) =>
    matmuls.flatMap(({ matrix }) => matrix.shards)
      .reduce((sum, { operand }) => sum + bytesOf(operand), 0);
  return [...Map.groupBy(matmuls, ({ matrix }) => shapeKey(matrix))]
    .map(([key, [first, ...rest]]) => ({ key, matmuls: [first as Matmul, ...rest] as const }))
    .toSorted((a, b) => bytes(b) - bytes(a));
}

/** The groups' row counts that `launches` does not know: one row of all of them first. */
export function unmeasured(
  groups: readonly MatmulGroup[],
  launches: Launches,
): { readonly group: MatmulGroup; readonly rows: number }[] {
  return MEASURED_ROWS.flatMap((rows) =>
    groups.filter(({ key }) => !launches.get(key)?.has(rows)).map((group) => ({ group, rows }))
  );
}

/**
 * Matrices of a layer: `plain` ones output whole sums, `ends` are those that end a branch. The router is separate, and
 * so are the rates of a DeltaNet.
 */
export function layerMatrices(
  { attention, mlp }: Pick<DecoderLayer, "attention" | "mlp">,
): { plain: Matrix[]; ends: Matrix[] } {
  const dense = mlp.kind === "dense"
    ? [mlp]
    : [mlp.shared, mlp.parallelMlp?.mlp].flatMap((of) => of ?? []);
  return {
    plain: [...inputsOf(attention), ...dense.map(({ gateUp }) => gateUp)],
    ends: [attention.o, ...dense.map(({ down }) => down)],
  };
}

/** Matrices that the input of an attention is multiplied with. */
function inputsOf(attention: AttentionWeights): Matrix[] {
  switch (attention.kind) {
    case "heads":
      return [attention.qkv, ...attention.gate ? [attention.gate] : []];
    case "latent":
      return projectionsOf(attention.input);
    case "conv":
      return [attention.input];
    case "delta":
      return [attention.input];
  }
}

function projectionsOf(input: LatentProjections): Matrix[] {
  if (input.kind === "joined") return [input.matrix];
  const { kvA, query, queryLatent } = input;
  return [kvA, query, ...queryLatent ? [queryLatent.matrix] : []];
}
