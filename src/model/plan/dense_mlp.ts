/** The gated MLP. */
import { notedEpilogue } from "../../../kernels/lib/epilogue.ts";
import { normedRows } from "../../../kernels/matmul/hold/hold.ts";
import { splitKOf } from "../../../kernels/matmul/matmul_shape.ts";
import {
  type RelayedFirst,
  relayedMatmuls,
  relays,
  relaysFirst,
} from "../../../kernels/matmul/relay/relay.ts";
import { notesOnUnits } from "../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { Dispatch } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import {
  type Branch,
  branchEnd,
  type DecoderContext,
  type End,
  type LastMatmul,
  type LayerSource,
  scalesOf,
} from "./decoder_context.ts";
import { type BranchInput, project } from "./branch_input.ts";
import type { Activation, DenseMlp } from "../config/layer_config.ts";

export interface DenseWeights {
  readonly kind: "dense";
  readonly spec: DenseMlp;
  /** [gate; up], [2 intermediate, hidden] */
  readonly gateUp: Matrix;
  /** [hidden, intermediate] */
  readonly down: Matrix;
}

const EPILOGUE = { silu: "swiglu", gelu_tanh: "geglu" } as const satisfies Readonly<
  Record<Activation, string>
>;

/** @param roles of its tensors, where they are not those of a layer's only MLP. */
export function loadDenseMlp(
  { load, label, tensor }: LayerSource,
  spec: DenseMlp,
  roles: { readonly gate: string; readonly up: string; readonly down: string } = ROLES,
): DenseWeights {
  const { gate, up, down } = roles;
  return {
    kind: "dense",
    spec,
    gateUp: load.pair(`${label}.${gate}Up`, tensor(gate), tensor(up)),
    down: load.matrix(`${label}.${down}`, [tensor(down)]),
  };
}

const ROLES = { gate: "gate", up: "up", down: "down" };

/** down(activation(gate x) * up x), x = `input`. */
export function denseMlp(
  context: DecoderContext,
  { spec, gateUp, down }: DenseWeights,
  { input, rows, end, label }: {
    readonly input: Omit<BranchInput, "stream">;
    readonly rows: number;
    readonly end: End;
    /** Of the layer. */
    readonly label: string;
  },
): Branch {
  const { tuning, scratch: { act } } = context;
  const name = EPILOGUE[spec.activation];
  const scales = input.xScales && scalesOf(context, "act", rows);
  const noted = scales && notedEpilogue(name, scales);
  const notes = noted && notesOnUnits(gateUp, { epilogue: noted, tuning })
    ? { epilogue: noted, scales }
    : undefined;
  const out = branchEnd(
    context,
    { matrix: down, x: act, xScales: notes?.scales },
    { rows, end, label: `${label}.down` },
  );
  const gated = project(
    context,
    input,
    { matrix: gateUp, out: act },
    { rows, epilogue: notes?.epilogue ?? name, label: `${label}.gateUp` },
  );
  return { ...out, plan: [...gated, ...out.plan] };
}

const GATES = { silu: "gate_silu", gelu_tanh: "gate_gelu" } as const satisfies Readonly<
  Record<Activation, string>
>;

/** One dispatch, and the same with the matmul before it. */
export type RelayedBranch = Branch & { readonly all: Dispatch | undefined };

/** The sums of `denseMlp` of one row, in one dispatch; undefined where that is not faster. */
export function relayedMlp(
  { tuning, scratch: { act, relay } }: DecoderContext,
  { spec, gateUp, down }: DenseWeights,
  { input: { x, norm }, last, label }: {
    readonly input: Omit<BranchInput, "stream">;
    /** What makes the sums that `input` adds, if that may be done in the same dispatch. */
    readonly last?: LastMatmul | undefined;
    readonly label: string;
  },
): RelayedBranch | undefined {
  const splitK = splitKOf(down, tuning);
  const use = { gateUp, down, splitK, tuning };
  const hold = norm && normedRows(norm, { cols: gateUp.cols, rows: 1 });
  const bound = Object.keys(hold?.buffers ?? {}).length;
  if (!relay || !relays(use, bound)) return undefined;
  const { sums: out } = relay;
  const record = (first?: RelayedFirst) =>
    relayedMatmuls({ x, relay: relay.act, act, out }, {
      ...use,
      norm,
      first,
      gate: GATES[spec.activation],
      label: `${label}.mlp`,
    });
  const sums = norm?.added && "sums" in norm.added;
  const all = last && sums && relaysFirst(last, use, bound)
    ? record({ ...last, words: relay.heads })
    : undefined;
  return { plan: [record()], splitK, sums: out, all };
}
