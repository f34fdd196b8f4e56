/** Which tensors of a checkpoint `--quantize` quantizes. */
import { UsageError } from "../../errors.ts";
import { isQuantizable } from "../../gpu/weight_format.ts";
import { quantizedView } from "../checkpoint/quantized/checkpoint.ts";
import { nvfp4View } from "../checkpoint/quantized/nvfp4.ts";
import { quantizationOf } from "../checkpoint/quantized/scheme.ts";
import { parseModelConfig } from "../config/config.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { fieldsOf, quote } from "../files/fields.ts";
import {
  checkTarget,
  findTensor,
  isEagleHead,
  isGrouped,
  targetTensors,
  type TensorSpec,
} from "./tensors.ts";

/**
 * Names of the stored tensors that are rows of a target's matrices and wide enough to be quantized.
 *
 * @param checkpoint the checkpoint with its tensors as they are stored.
 * @throws UsageError for an EAGLE head, for a checkpoint that is quantized already, and if it is no model.
 */
export function quantizableTensors(checkpoint: Checkpoint): ReadonlySet<string> {
  const { name } = checkpoint;
  const refuse = (why: string) => new UsageError(`Cannot quantize ${quote(name)}: ${why}`);
  const json = checkpoint.json("config.json");
  // Tensors may show it without any config.
  const shown = () =>
    quantizedView(nvfp4View(checkpoint)).tensors.values().some(({ dtype }) => isGrouped(dtype));
  const said = quantizationOf(fieldsOf(name, "config.json", json)) !== undefined;
  if (said || shown()) throw refuse("it is quantized already");
  if (isEagleHead(checkpoint)) throw refuse("it is an EAGLE head; allowed is a whole model");
  const config = parseModelConfig(name, json, checkpoint.json("generation_config.json"));
  checkTarget(checkpoint, config);
  const specs = targetTensors(config);
  // A tied embedding is also a table whose rows are looked up, so it is not quantized.
  const tables = new Set(namesOf(checkpoint, specs.filter(({ kind }) => kind !== "matrix")));
  const matrices = specs.filter(({ kind, shape: [, cols = 0] }) =>
    kind === "matrix" && isQuantizable(cols)
  );
  return new Set(namesOf(checkpoint, matrices).filter((each) => !tables.has(each)));
}

/** Names of the stored tensors; a spec may be only some rows of one. */
function namesOf(checkpoint: Checkpoint, specs: readonly TensorSpec[]): string[] {
  return specs.flatMap((spec) => findTensor(checkpoint, spec)?.name ?? []);
}
