import type { Operand } from "../../src/gpu/kernel.ts";
import type { Slots } from "../../src/gpu/link.ts";

/** What happens to y: a WGSL fragment with `fn epilogue(row, c, half, sum)`, and what it needs besides. */
export interface Epilogue {
  /** Part of the kernel's name: equal names are equal code. */
  readonly name: string;
  /**
   * `epilogue`, and what its own slots stand for. `out`: WGSL with `out`, `fn end_group` and
   * `fn end_rows`; absent: matmul/out. Another one is for kernels that add lanes, and two pairs.
   */
  readonly slots: Slots & { readonly epilogue: string };
  /** Whether `out` takes numbers of any columns, although it is not matmul/out; default false. */
  readonly relays?: boolean;
  /** `out` of matrix units instead, with `fn end_row`; absent: tensor/out_store. */
  readonly unitsOut?: string;
  /**
   * Whether it is also `prepare(row, c)` and `finish(prepared, c, sum)`, so that what it reads can be asked
   * for before anything is written; default false.
   */
  readonly prepares?: boolean;
  /** Bound after weights, x and out, in this order. */
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  /** Numbers that its texts name with a dollar. */
  readonly counts?: Readonly<Record<string, number>>;
  /** Columns of `out`, over those of y. */
  readonly outShare: number;
  /** Elements read and written, over those of y. */
  readonly moved: number;
}

/**
 * The plain ones: `out = y`, `out += y`, or of a paired matrix `out = silu(gate) * up` or
 * `out = gelu(gate) * up`.
 */
export type PlainEpilogue = "store" | "add" | "swiglu" | "geglu";

export const PLAIN: Readonly<Record<PlainEpilogue, Epilogue>> = {
  store: plain("store", { outShare: 1, moved: 1 }),
  add: plain("add", { outShare: 1, moved: 2 }),
  swiglu: plain("swiglu", { outShare: 0.5, moved: 0.5 }),
  geglu: plain("geglu", { outShare: 0.5, moved: 0.5 }),
};

const GATES = { swiglu: "gate_silu", geglu: "gate_gelu" } as const;

/**
 * On matrix units alone: a gated one that lowers the scales `noted` of its rows, f32 [rows], which are the
 * largest before.
 */
export function notedEpilogue(name: keyof typeof GATES, noted: Operand): Epilogue {
  return {
    ...PLAIN[name],
    name: `${name}_noted`,
    slots: {
      epilogue: "matmul/epilogue/gated_noted",
      gate: `matmul/epilogue/${GATES[name]}`,
    },
    unitsOut: "tensor/out_noted",
    buffers: { noted },
  };
}

function plain(name: PlainEpilogue, moves: Pick<Epilogue, "outShare" | "moved">): Epilogue {
  return {
    name,
    slots: { epilogue: `matmul/epilogue/${name}` },
    buffers: {},
    constants: {},
    ...moves,
  };
}

/** `out = most tanh(y / most)`. */
export function capEpilogue(most: number): Epilogue {
  const slots = { epilogue: "matmul/epilogue/cap" };
  return { name: "cap", slots, buffers: {}, constants: { CAP: most }, outShare: 1, moved: 1 };
}
