import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

/** Buffers of a dispatch: with the three others no more than every adapter binds. */
const MAX_BUFFERS = 5;

interface MoveCellsParameters {
  /** Buffers whose cells are moved, at most MAX_BUFFERS. */
  readonly BUFFERS: number;
}

function moveKernel(buffers: number): Kernel {
  return kernelOf<MoveCellsParameters>("round/move_cells")({ BUFFERS: buffers }, {
    name: `move_cells_${buffers}`,
  });
}

/** Buffers that keep something of every cell in the same way. */
export interface CellBuffers {
  /** [pages, heads, PAGE, words] u32 each. */
  readonly buffers: readonly Operand[];
  readonly heads: number;
  readonly words: number;
}

/** Which rows were kept, see accept_commit.wgsl. */
export interface KeptRows {
  readonly extend: Operand;
  readonly last: Operand;
  readonly pages: Operand;
}

/** Records moving what was kept of accepted rows to its logical cells. */
export function moveCells(
  kept: KeptRows,
  cells: CellBuffers,
  shape: {
    readonly batch: number;
    /** Verify rows a sequence. */
    readonly rows: number;
    readonly depth: number;
    /** As of `acceptTree`. */
    readonly kept: number;
    readonly tablePages: number;
  },
): Dispatch[] {
  const { heads, words } = cells;
  const count = Math.ceil(cells.buffers.length / MAX_BUFFERS);
  return Array.from({ length: count }, (_, i) => {
    const some = cells.buffers.slice(i * MAX_BUFFERS, (i + 1) * MAX_BUFFERS);
    return dispatch(moveKernel(some.length), {
      buffers: { ...kept, ...Object.fromEntries(some.map((buffer, n) => [`cells${n}`, buffer])) },
      constants: {
        ROWS: shape.rows,
        KEPT_ROWS: shape.depth + 1,
        KEPT: shape.kept,
        HEADS: heads,
        WORDS: words,
        TABLE_PAGES: shape.tablePages,
      },
      workgroups: [Math.ceil(heads * words / 64), shape.batch],
      label: `move_cells.${i}`,
      work: { bytes: 2 * 4 * some.length * heads * words * shape.batch * shape.depth, flops: 0 },
    });
  });
}
