import type { Operand } from "../../src/gpu/kernel.ts";
import type { KernelParameters } from "../../src/gpu/directives.ts";

/** What happens to y: `fn epilogue(row, c, half, sum)` of matmul/epilogue.wgsl, and what it needs besides. */
export interface Epilogue {
  /** Part of the kernel's name: equal names are equal code. */
  readonly name: string;
  /**
   * KernelParameters of matmul/epilogue.wgsl: which one it is, and what its text depends on.
   */
  readonly parameters: KernelParameters & { readonly epilogue: string };
  /**
   * What goes to `out` (matmul/out.wgsl); default numbers. Partial results are for kernels that add lanes, and two
   * pairs.
   */
  readonly out?: "numbers" | "partials" | "relay";
  /** On matrix units: whether the scales of the rows of `out` are lowered; default false. */
  readonly noted?: boolean;
  /**
   * Whether it is also `prepare(row, c)` and `finish(prepared, c, sum)`, so that what it reads can be asked
   * for before anything is written; default false.
   */
  readonly prepares?: boolean;
  /** Bound after weights, x and out, in this order. */
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  /** Columns of `out`, over those of y. */
  readonly outShare: number;
  /** Elements read and written, over those of y. */
  readonly moved: number;
}

const GATES = { swiglu: "gate_silu", geglu: "gate_gelu" } as const;

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

/**
 * On matrix units alone: a gated one that lowers the scales `noted` of its rows, f32 [rows], which are the
 * largest before.
 */
export function notedEpilogue(name: keyof typeof GATES, noted: Operand): Epilogue {
  return {
    ...PLAIN[name],
    name: `${name}_noted`,
    parameters: { epilogue: "gated_noted", gate: GATES[name] },
    noted: true,
    buffers: { noted },
  };
}

function plain(name: PlainEpilogue, moves: Pick<Epilogue, "outShare" | "moved">): Epilogue {
  return {
    name,
    parameters: name === "swiglu" || name === "geglu"
      ? { epilogue: "gated", gate: GATES[name] }
      : { epilogue: name },
    buffers: {},
    constants: {},
    ...moves,
  };
}

/** `out = by y`. */
export function scaleEpilogue(by: number): Epilogue {
  const parameters = { epilogue: "scale" };
  return { name: "scale", parameters, buffers: {}, constants: { BY: by }, outShare: 1, moved: 1 };
}

/** `out = most tanh(y / most)`. */
export function capEpilogue(most: number): Epilogue {
  const parameters = { epilogue: "cap" };
  return { name: "cap", parameters, buffers: {}, constants: { CAP: most }, outShare: 1, moved: 1 };
}
