/**
 * Activations of gated MLPs, out = activation(gate) * up: the parameter `gate` of lib/gate.wgsl, and what a matmul's
 * epilogue with it is called.
 *
 *     silu(g) = g / (1 + exp(-g))
 *     gelu_tanh(g) = g / 2 (1 + tanh(sqrt(2 / pi) (g + 0.044715 g^3)))
 */
export const GATES = {
  silu: { gate: "gate_silu", epilogue: "swiglu" },
  gelu_tanh: { gate: "gate_gelu", epilogue: "geglu" },
} as const;

export type Activation = keyof typeof GATES;

/** What lib/gate.wgsl calls an activation. */
export type GateName = (typeof GATES)[Activation]["gate"];

/** The function of a gate that an output is multiplied by: see lib/gating.wgsl. */
export type Gating = "sigmoid" | "softplus";

/** What a matmul's epilogue with an activation is called. */
export type GatedEpilogue = (typeof GATES)[Activation]["epilogue"];
