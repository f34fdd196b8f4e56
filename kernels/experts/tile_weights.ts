import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { kernelOf } from "../shader.ts";

/** Rows that lie together: those of a tile of the unit's columns that are of one half of an expert's matrix. */
export function rowGroup({ n }: Pick<MatrixUnit, "n">): number {
  return n / 2;
}

interface TileWeightsParameters {
  /** Rows that lie together. */
  readonly GROUP: number;
  /** Whether weights are f16 already: they are bf16. */
  readonly HALVED: false;
}

function tileKernel(group: number): Kernel {
  return kernelOf<TileWeightsParameters>("experts/tile_weights")({ GROUP: group, HALVED: false }, {
    name: `tile_weights_${group}`,
    bindings: ["weights", "scales", "tiles"],
    constants: ["COLS"],
  });
}

/**
 * Records `tiles`, f16 of `rows` rows of bf16 `weights` [rows, cols] times their `scales` [rows] (as `weightScales`
 * writes them), in the order of expert_tensor.wgsl. Rows are a multiple of `rowGroup`, at most 65,535 times it.
 */
export function tileWeights(
  buffers: { readonly weights: Operand; readonly scales: Operand; readonly tiles: Operand },
  { unit, rows, cols }: {
    readonly unit: Pick<MatrixUnit, "n">;
    readonly rows: number;
    readonly cols: number;
  },
): Dispatch {
  const group = rowGroup(unit);
  if (rows % group !== 0 || cols % 8 !== 0) throw new Error(`tiles of ${rows} x ${cols} weights`);
  return dispatch(tileKernel(group), {
    buffers,
    constants: { COLS: cols },
    workgroups: [Math.ceil(cols / 8 * group / 256), rows / group],
    label: "tile_weights",
  });
}
