/** How a draft checkpoint names its tensors: exports use different names for the same tensors. */
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { DraftConfig } from "./types.ts";
import { type Fields, quote, unusable } from "../files/fields.ts";

/** What only the tensors show. */
export interface DraftLayout extends Pick<DraftConfig, "prefix" | "fc" | "layerPrefix"> {
  /** Whether the tensor (its name without `prefix`) is there. */
  has(name: string): boolean;
  /** Shape of a tensor, undefined when absent. */
  shape(name: string): readonly number[] | undefined;
}

/** SGLang's exports of EAGLE-1 put "model." in front. */
const PREFIXES = ["", "model."];
/** fusion_fc and transformer are the speculators library's names in EAGLE-1. */
const FUSIONS = ["fc", "fusion_fc"];
const LAYERS = ["midlayer", "layers.0", "transformer"];
const PROBE = "self_attn.q_proj.weight";

/**
 * Finds the names in use. @throws UsageError if the tensors are no EAGLE head of one layer.
 * @param config for messages.
 */
export function findLayout(config: Fields, { tensors }: Checkpoint): DraftLayout {
  const fail = (why: string) => unusable({ ...config, where: "it" }, why);
  const [prefix, fc] = PREFIXES.flatMap((start) => FUSIONS.map((name) => [start, name] as const))
    .find(([start, name]) => tensors.has(`${start}${name}.weight`)) ?? [];
  if (prefix === undefined || fc === undefined) {
    throw fail("is not an EAGLE draft: it has no tensor fc.weight");
  }
  const layerPrefix = LAYERS.find((layer) => tensors.has(`${prefix}${layer}.${PROBE}`));
  if (layerPrefix === undefined) {
    const names = LAYERS.map((layer) => `${prefix}${layer}.${PROBE}`);
    throw fail(`has no tensor ${names.join(" or ")}`);
  }
  const more = [...tensors.keys()].find((name) => /^(model\.)?layers\.[1-9]/.test(name));
  if (more !== undefined) throw fail(`has more than one layer (tensor ${quote(more)})`);
  const find = (name: string): readonly number[] | undefined =>
    (tensors.get(prefix + name) ?? tensors.get(name))?.shape;
  return { prefix, fc, layerPrefix, shape: find, has: (name) => find(name) !== undefined };
}

/** The names of a tensor outside a draft's layer: exports with a prefix differ in whether these have it too. */
export function namesOutsideLayer(name: string): readonly [string, string] {
  return [name, `model.${name}`];
}
