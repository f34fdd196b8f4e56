/** The gated MLP. */
import type { PlainEpilogue } from "../../../shaders/matmul/matmul.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import {
  type Branch,
  branchEnd,
  type DecoderContext,
  type End,
  type LayerSource,
} from "./decoder_context.ts";
import { type BranchInput, project } from "./branch_input.ts";
import type { Activation, DenseMlp } from "../config/layer_spec.ts";

export interface DenseWeights {
  readonly kind: "dense";
  readonly spec: DenseMlp;
  /** [gate; up], [2 intermediate, hidden] */
  readonly gateUp: Matrix;
  /** [hidden, intermediate] */
  readonly down: Matrix;
}

const EPILOGUE: Readonly<Record<Activation, PlainEpilogue>> = {
  silu: "swiglu",
  gelu_tanh: "geglu",
};

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
  const { scratch: { act } } = context;
  const out = branchEnd(context, { matrix: down, x: act }, { rows, end, label: `${label}.down` });
  const gated = project(
    context,
    input,
    { matrix: gateUp, out: act },
    { rows, epilogue: EPILOGUE[spec.activation], label: `${label}.gateUp` },
  );
  return { ...out, plan: [...gated, ...out.plan] };
}
