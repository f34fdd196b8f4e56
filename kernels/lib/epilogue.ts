import type { Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { type Activation, type GatedEpilogue, type GateName, GATES } from "./gate.ts";
import type { PartialKind } from "./partial.ts";

/** Parameters of lib/epilogue.wgsl: which of its epilogues it is, and what that one depends on. */
export type EpilogueParameters =
  | {
    /** "handoff": y is stored for other workgroups of the dispatch, see lib/matmul_outputs.wgsl. */
    readonly epilogue:
      | "store"
      | "add"
      | "bias"
      | "scale"
      | "cap"
      | "clamped"
      | "clamped_scaled"
      | "handoff";
  }
  | {
    /** "gated_scaled": also reduces the scales of its rows; "handoff_gated": stored as by "handoff". */
    readonly epilogue: "gated" | "gated_scaled" | "handoff_gated";
    /** What the gate goes through. */
    readonly gate: GateName;
  }
  | { readonly epilogue: "gated_by"; readonly gate: "gate_gelu" }
  | {
    readonly epilogue: "qkv";
    /** What keys and values are stored as. */
    readonly kv: KvDtype;
    /** Whether q, k and v have a bias. */
    readonly BIASED: boolean;
  }
  | {
    readonly epilogue: "partial";
    /** What is kept of a part of the columns: lib/partial_KIND. */
    readonly partial: PartialKind;
    /** Pairs of u32 words of that. */
    readonly PARTIAL_PAIRS: number;
  };

/** What happens to y: `fn epilogue(row, c, half, sum)` of lib/epilogue.wgsl, and what it needs besides. */
export interface Epilogue {
  /** Part of the kernel's name: equal names are equal code. */
  readonly name: string;
  readonly parameters: EpilogueParameters;
  /**
   * What is stored in `out` (lib/matmul_outputs.wgsl); default numbers. Partial results need a kernel that adds lanes,
   * two pairs of outputs at a time.
   */
  readonly out?: "numbers" | "partials" | "handoff";
  /** On matrix units: whether the scales of the rows of `out` are reduced; default false. */
  readonly outScales?: boolean;
  /**
   * Whether it also declares `prepare(row, c)` and `finish(prepared, c, sum)`, so that its reads can be issued before
   * anything is written; default false.
   */
  readonly prepares?: boolean;
  /**
   * Whether the outputs of a pair are of neighbouring rows of an expert, not of rows half the expert apart; default
   * false.
   */
  readonly neighbours?: boolean;
  /** Bound after weights, x and out, in this order. */
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  /** Columns of `out`, divided by those of y. */
  readonly outShare: number;
  /** Elements read and written, divided by those of y. */
  readonly moved: number;
}

/**
 * The plain ones: `out = y`, `out += y`, or of a matrix of gate and up `out = silu(gate) * up` or
 * `out = gelu(gate) * up`.
 */
export type PlainEpilogue = "store" | "add" | GatedEpilogue;

export const PLAIN: Readonly<Record<PlainEpilogue, Epilogue>> = {
  store: plain("store", { epilogue: "store" }, { outShare: 1, moved: 1 }),
  add: plain("add", { epilogue: "add" }, { outShare: 1, moved: 2 }),
  ...Object.fromEntries(
    Object.values(GATES).map(({ epilogue: name, gate }) =>
      [name, plain(name, { epilogue: "gated", gate }, { outShare: 0.5, moved: 0.5 })] as const
    ),
  ) as Record<GatedEpilogue, Epilogue>,
};

/**
 * On matrix units alone: a gated epilogue that reduces the scales `outScales` of its rows, f32 [rows]. They must be the
 * largest scale before.
 */
export function scaledEpilogue(activation: Activation, outScales: Operand): Epilogue {
  const { epilogue, gate } = GATES[activation];
  return {
    ...PLAIN[epilogue],
    name: `${epilogue}_scaled`,
    parameters: { epilogue: "gated_scaled", gate },
    outScales: true,
    buffers: { out_scales: outScales },
  };
}

function plain(
  name: PlainEpilogue,
  parameters: EpilogueParameters,
  moves: Pick<Epilogue, "outShare" | "moved">,
): Epilogue {
  return { name, parameters, buffers: {}, constants: {}, ...moves };
}

/** `out = y + bias`, f32 [columns]; with several ranges of k only the first adds the bias. */
export function biasEpilogue(bias: Operand): Epilogue {
  const parameters = { epilogue: "bias" } as const;
  return { name: "bias", parameters, buffers: { bias }, constants: {}, outShare: 1, moved: 1 };
}

/**
 * The epilogue of experts whose gate and up are neighbouring rows: see lib/clamped_gate.wgsl.
 *
 * @param bias of the experts' rows, f32 [experts, rows].
 * @param outScales as of `scaledEpilogue`.
 */
export function clampedEpilogue(
  { bias, limit }: { readonly bias: Operand; readonly limit: number },
  outScales?: Operand,
): Epilogue {
  const epilogue = outScales ? "clamped_scaled" : "clamped";
  return {
    name: epilogue,
    parameters: { epilogue },
    outScales: outScales !== undefined,
    neighbours: true,
    buffers: { bias, ...outScales && { out_scales: outScales } },
    constants: { LIMIT: limit },
    outShare: 0.5,
    moved: 0.5,
  };
}

/** `out = gelu(y) by`, number by number. @param by f32, rows like those of `out`. */
export function gatedByEpilogue(by: Operand): Epilogue {
  const parameters = { epilogue: "gated_by", gate: "gate_gelu" } as const;
  return { name: "gelu_by", parameters, buffers: { by }, constants: {}, outShare: 1, moved: 2 };
}

/** `out = by y`. */
export function scaleEpilogue(by: number): Epilogue {
  const parameters = { epilogue: "scale" } as const;
  return { name: "scale", parameters, buffers: {}, constants: { BY: by }, outShare: 1, moved: 1 };
}

/** `out = most tanh(y / most)`. */
export function capEpilogue(most: number): Epilogue {
  const parameters = { epilogue: "cap" } as const;
  return { name: "cap", parameters, buffers: {}, constants: { CAP: most }, outShare: 1, moved: 1 };
}
