/** Completes a checkpoint with tensors of another one that it lacks. */
import { isObject } from "../../objects.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { quote } from "../files/fields.ts";
import { parseModelConfig } from "../config/config.ts";
import { parseNextnConfig } from "../config/nextn_config.ts";
import { checkTensors, draftTensors, findTensor, targetTensors } from "./tensors.ts";

/** Keys that exports drop from config.json together with the tensors. */
const LENT_KEYS = ["num_nextn_predict_layers"];

/**
 * The checkpoint `own`, completed from `donor`: tensors of the model and of its NextN layer that `own` lacks are read
 * from there. The config of `own` decides which tensors the model has. Exports of fine-tuned and quantized models often
 * have no NextN layer. The view owns both checkpoints.
 *
 * @throws UsageError where the config of `own` describes no model, or a tensor of the donor does not fit it.
 */
export function withDonor(own: Checkpoint, donor: Checkpoint): Checkpoint {
  const json = (file: string) =>
    file === "config.json" ? lentConfig(own.json(file), donor.json(file)) : own.json(file);
  const config = parseModelConfig(own.name, json("config.json"), undefined);
  // Qwen's configs do not say whether there is a NextN layer.
  const tensors = new Map([...donor.tensors, ...own.tensors]);
  const drafts = config.nextnLayers || config.mtp && tensors.has("mtp.fc.weight");
  const nextn = drafts ? draftTensors(parseNextnConfig({ ...own, json, tensors })) : [];
  const missing = [...targetTensors(config), ...nextn]
    .filter((spec) => !findTensor(own, spec) && findTensor(donor, spec));
  // Here a tensor that does not fit is named by the donor's file.
  checkTensors(donor, missing);
  const lent = new Map(
    missing.flatMap(({ name, aliases = [], stack }) => [name, ...aliases, ...stack?.names ?? []])
      .flatMap((name) => {
        const tensor = donor.tensors.get(name);
        return tensor ? [[name, tensor] as const] : [];
      }),
  );
  const from = `${own.name}: ${quote(donor.name)}`;
  const what = lent.size === 1
    ? "1 tensor that is missing, it is"
    : `${lent.size} tensors that are missing, they are`;
  const warning = lent.size === 0
    ? `${from} is not used: no tensor that it has is missing`
    : `${from} has ${what} read from there`;
  return {
    ...own,
    json,
    tensors: new Map([...own.tensors, ...lent]),
    warnings: [...own.warnings ?? [], warning],
    read: (tensor, offset, into) =>
      (lent.has(tensor.name) ? donor : own).read(tensor, offset, into),
    [Symbol.dispose]() {
      own[Symbol.dispose]();
      donor[Symbol.dispose]();
    },
  };
}

function lentConfig(own: unknown, donor: unknown): unknown {
  if (!isObject(own) || !isObject(donor)) return own;
  const lent = LENT_KEYS.filter((key) => own[key] === undefined && donor[key] !== undefined);
  return { ...own, ...Object.fromEntries(lent.map((key) => [key, donor[key]])) };
}
