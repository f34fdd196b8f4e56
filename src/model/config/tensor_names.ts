/** The names of a checkpoint's tensors. */
export interface TensorNames {
  /** Possible prefixes of every tensor but lm_head. */
  readonly prefixes: readonly string[];
  /** Possible prefixes of lm_head; absent: none. */
  readonly headPrefixes?: readonly string[];
  /**
   * Role -> module within a layer (`layers.N.`). Matrix roles that share a module are rows of one matrix, in the
   * order in which they are asked for. Modules of experts have the expert's number at EXPERT.
   */
  readonly modules: Readonly<Record<LayerRole, string>>;
  /** The final norm; default "norm". */
  readonly norm?: string;
  /**
   * Names within a layer of the tensors that hold all its experts, if experts have no tensors of their own: gateUp is
   * [experts, 2 intermediate, hidden], down is [experts, hidden, intermediate].
   */
  readonly expertStacks: { readonly gateUp: string; readonly down: string };
}

/** A module of a layer: a matrix or the weights of a norm. */
export type LayerRole =
  | "inputNorm"
  | "q"
  | "k"
  | "v"
  | "qNorm"
  | "kNorm"
  | "outputGate"
  | "o"
  | "attentionNorm"
  | "postNorm"
  | "gate"
  | "up"
  | "down"
  | "mlpNorm"
  | "qA"
  | "qANorm"
  | "qB"
  | "kvA"
  | "kvANorm"
  | "kvB"
  | "router"
  | "routerBias"
  | "expertGate"
  | "expertUp"
  | "expertDown"
  | "sinks"
  | "sharedGate"
  | "sharedUp"
  | "sharedDown"
  | "denseNorm"
  | "expertsInputNorm"
  | "expertsNorm"
  | "routerScale"
  | "expertScale"
  | "perLayerGate"
  | "perLayerProjection"
  | "perLayerNorm"
  | "layerScalar"
  | "convIn"
  | "convTaps"
  | "convOut"
  | "sharedExpertGate"
  | "deltaQkv"
  | "deltaZ"
  | "deltaB"
  | "deltaA"
  | "deltaQkvz"
  | "deltaBa"
  | "deltaTaps"
  | "deltaLog"
  | "deltaBias"
  | "deltaNorm"
  | "deltaOut";

/** Stands for an expert's number. */
export const EXPERT = "{expert}";

/** Llama's names, which most families share. */
export const LLAMA_NAMES: TensorNames = {
  prefixes: ["model."],
  modules: {
    inputNorm: "input_layernorm",
    q: "self_attn.q_proj",
    k: "self_attn.k_proj",
    v: "self_attn.v_proj",
    qNorm: "self_attn.q_norm",
    kNorm: "self_attn.k_norm",
    outputGate: "self_attn.gate_proj",
    o: "self_attn.o_proj",
    // Llama has no norms after a branch; these are the names in families that have all four norms. A family with both
    // roles must rename one: otherwise both load the same tensor.
    attentionNorm: "post_attention_layernorm",
    postNorm: "post_attention_layernorm",
    gate: "mlp.gate_proj",
    up: "mlp.up_proj",
    down: "mlp.down_proj",
    mlpNorm: "post_feedforward_layernorm",
    // Latent attention and mixtures: DeepSeek's names, which Qwen uses too.
    qA: "self_attn.q_a_proj",
    qANorm: "self_attn.q_a_layernorm",
    qB: "self_attn.q_b_proj",
    kvA: "self_attn.kv_a_proj_with_mqa",
    kvANorm: "self_attn.kv_a_layernorm",
    kvB: "self_attn.kv_b_proj",
    router: "mlp.gate",
    // The whole name of the tensor that is added to the scores for the choice.
    routerBias: "mlp.gate.e_score_correction_bias",
    expertGate: `mlp.experts.${EXPERT}.gate_proj`,
    expertUp: `mlp.experts.${EXPERT}.up_proj`,
    expertDown: `mlp.experts.${EXPERT}.down_proj`,
    // The whole name of a tensor of gpt-oss.
    sinks: "self_attn.sinks",
    sharedGate: "mlp.shared_experts.gate_proj",
    sharedUp: "mlp.shared_experts.up_proj",
    sharedDown: "mlp.shared_experts.down_proj",
    // Gemma 4's alone.
    denseNorm: "post_feedforward_layernorm_1",
    expertsInputNorm: "pre_feedforward_layernorm_2",
    expertsNorm: "post_feedforward_layernorm_2",
    routerScale: "router.scale",
    expertScale: "router.per_expert_scale",
    perLayerGate: "per_layer_input_gate",
    perLayerProjection: "per_layer_projection",
    perLayerNorm: "post_per_layer_input_norm",
    layerScalar: "layer_scalar",
    // Short convolutions are LFM2's.
    convIn: "conv.in_proj",
    convTaps: "conv.conv",
    convOut: "conv.out_proj",
    // Gated DeltaNets are Qwen's.
    sharedExpertGate: "mlp.shared_expert_gate",
    deltaQkv: "linear_attn.in_proj_qkv",
    deltaZ: "linear_attn.in_proj_z",
    deltaB: "linear_attn.in_proj_b",
    deltaA: "linear_attn.in_proj_a",
    deltaQkvz: "linear_attn.in_proj_qkvz",
    deltaBa: "linear_attn.in_proj_ba",
    deltaTaps: "linear_attn.conv1d",
    deltaLog: "linear_attn.A_log",
    deltaBias: "linear_attn.dt_bias",
    deltaNorm: "linear_attn.norm",
    deltaOut: "linear_attn.out_proj",
  },
  // The names of transformers 5, without ".weight".
  expertStacks: { gateUp: "mlp.experts.gate_up_proj", down: "mlp.experts.down_proj" },
};

/** Prefixes of a text model that is, or was, a part of a multimodal one. */
export const WRAPPED: Pick<TensorNames, "prefixes" | "headPrefixes"> = {
  prefixes: ["model.", "language_model.model.", "model.language_model."],
  headPrefixes: ["", "language_model."],
};

/** Llama's names with some modules renamed. */
export function llamaNamesBut(modules: Partial<TensorNames["modules"]>): TensorNames {
  return { ...LLAMA_NAMES, modules: { ...LLAMA_NAMES.modules, ...modules } };
}
