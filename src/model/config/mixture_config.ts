/** Reads mixtures of experts. */
import type { Routing } from "../../../kernels/experts/route.ts";
import { layerCount, MAX, size } from "./decoder_config.ts";
import type { BaseLayer } from "./types.ts";
import { type Fields, integer, quote, unusable, value } from "../files/fields.ts";
import type { MixtureMlp } from "./layer_config.ts";

const MAX_EXPERTS = 1024;
const MAX_CHOSEN = 64;
/** Most experts of all layers together, well above any published model: each expert has three tensors. */
const MAX_TOGETHER = 2 ** 16;

/** Mixtral's routing: softmax over all experts; the weights of the chosen ones are divided by their sum. */
const PLAIN = {
  scores: "softmax",
  groups: 1,
  topGroups: 1,
  groupBest: 1,
  normalize: true,
  scale: 1,
} as const;

/**
 * Whether layer `i` is dense: by `mlp_layer_types`, without it the first layer. transformers does not read the keys
 * that published files have too (`first_k_dense_replace`, `mlp_only_layers`).
 */
export function isDense(config: Fields, i: number): boolean {
  const types = value(config, "mlp_layer_types");
  if (types === undefined) return i === 0;
  const type: unknown = Array.isArray(types) ? types[i] : undefined;
  if (type === "dense" || type === "sparse") return type === "dense";
  throw unusable(
    config,
    `has mlp_layer_types ${quote(types)}, expected dense or sparse for each layer`,
  );
}

/**
 * A mixture without a shared expert.
 * @param keys config keys of the number of experts and of their width.
 * @param own routing that differs from Mixtral's.
 * @throws UsageError for impossible numbers, or for an activation that the experts do not support.
 */
export function parseMixture(
  config: Fields,
  { mlp: { activation } }: BaseLayer,
  keys: {
    readonly experts: string;
    readonly size: string;
    /** Key of the number of chosen experts; default `num_experts_per_tok`. */
    readonly chosen?: string;
    /** Whether the experts' activation may be another than SiLU. */
    readonly anyActivation?: boolean;
  },
  own: Partial<Omit<Routing, "numExperts" | "topK">> = {},
): MixtureMlp {
  const numExperts = integer(config, keys.experts, { min: 1, max: MAX_EXPERTS });
  const layers = layerCount(config);
  if (numExperts * layers > MAX_TOGETHER) {
    const why = `has ${numExperts} experts in ${layers} layers, expected at most ${MAX_TOGETHER}`;
    throw unusable(config, `${why} together`);
  }
  const topK = integer(config, keys.chosen ?? "num_experts_per_tok", {
    min: 1,
    max: Math.min(MAX_CHOSEN, numExperts),
  });
  const routing = { ...PLAIN, ...own, numExperts, topK };
  refuseGroups(config, routing);
  if (activation !== "silu" && keys.anyActivation !== true) {
    throw unusable(config, `has experts with ${activation}, expected silu`);
  }
  const intermediateSize = size(config, keys.size, MAX.intermediate);
  const mixture = { kind: "mixture", routing, intermediateSize, shared: undefined } as const;
  return activation === "silu" ? mixture : { ...mixture, activation };
}

/** Refuses groups of different sizes, and groups with too few experts for the choice. */
function refuseGroups(config: Fields, routing: Routing): void {
  const { numExperts, topK, groups, topGroups, groupBest } = routing;
  const group = numExperts / groups;
  if (Number.isInteger(group) && group >= groupBest && topGroups * group >= topK) return;
  const why = `has ${numExperts} experts in ${groups} groups, of which ${topGroups} are chosen`;
  throw unusable(config, `${why}; expected equal ones with room for ${topK} experts`);
}
