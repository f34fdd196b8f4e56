/** Weights of a mixture of experts. */
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import { type MixtureMlp, sharedExperts } from "../config/layer_config.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { LayerSource } from "./decoder_context.ts";
import { type DenseWeights, loadDenseMlp } from "./dense_mlp.ts";

export interface MixtureWeights {
  readonly kind: "mixture";
  readonly spec: MixtureMlp;
  /** [experts, hidden] */
  readonly router: Matrix;
  /** Added to scores for the choice, [experts]. */
  readonly bias: Operand | undefined;
  /** [gate; up] of each expert, [experts + stacked, 2 intermediate, hidden]. */
  readonly gateUp: Matrix;
  /** [experts + stacked, hidden, intermediate] */
  readonly down: Matrix;
  /** Experts that every row has, as parts of the shared one: the last of both stacks (expert_rows.wgsl). */
  readonly stacked: number;
  /** The shared expert, where it is not stacked. */
  readonly shared: DenseWeights | undefined;
}

const SHARED_ROLES = { gate: "sharedGate", up: "sharedUp", down: "sharedDown" };

export function loadMixtureMlp(source: LayerSource, spec: MixtureMlp): MixtureWeights {
  const { load, label, tensor } = source;
  const { routing: { scores, numExperts }, shared } = spec;
  const experts = Array.from({ length: numExperts }, (_, expert) => expert);
  const of = (expert: number, role: string) => tensor(`${role}.${expert}`);
  const stacks = {
    gateUp: experts.map((expert) => [of(expert, "expertGate"), of(expert, "expertUp")]),
    down: experts.map((expert) => [of(expert, "expertDown")]),
  };
  const parts = shared ? sharedParts(source, spec) : [];
  const gateUp = [...stacks.gateUp, ...parts.map(({ gateUp }) => gateUp)];
  const down = [...stacks.down, ...parts.map(({ down }) => down)];
  const together = parts.length > 0 && load.stackable(gateUp.flat()) &&
    load.stackable(down.flat());
  const taken = together ? { gateUp, down } : stacks;
  return {
    kind: "mixture",
    spec,
    router: load.table(`${label}.router`, tensor("router")),
    bias: scores === "sigmoid"
      ? load.vector(`${label}.routerBias`, tensor("routerBias"))
      : undefined,
    gateUp: load.experts(`${label}.experts.gateUp`, taken.gateUp),
    down: load.experts(`${label}.experts.down`, taken.down),
    stacked: together ? parts.length : 0,
    shared: shared && !together ? loadDenseMlp(source, shared, SHARED_ROLES) : undefined,
  };
}

/**
 * The shared expert's tensors as those of as many experts as its width makes; none where it does not. The first
 * part has the tensors, whole: parts are places in the stack. A row of `down` becomes a row for each.
 */
function sharedParts(
  { tensor }: LayerSource,
  spec: MixtureMlp,
): { readonly gateUp: TensorInfo[]; readonly down: TensorInfo[] }[] {
  const count = sharedExperts(spec);
  const down = tensor(SHARED_ROLES.down);
  const [rows = 0, cols = 0] = down.shape;
  const cut = { ...down, shape: [rows * count, cols / count] };
  const whole = { gateUp: [tensor(SHARED_ROLES.gate), tensor(SHARED_ROLES.up)], down: [cut] };
  return Array.from({ length: count }, (_, part) => part === 0 ? whole : { gateUp: [], down: [] });
}
