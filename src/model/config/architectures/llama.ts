import type { Family } from "../types.ts";
import { flag, unusable } from "../../files/fields.ts";

/** Llama 2, 3, 3.1 to 3.3, and what follows their layout: the layer that others differ from. */
export const LLAMA: Family = {
  architecture: "LlamaForCausalLM",
  modelType: "llama",
  layer(config, base) {
    if (!flag(config, "use_sliding_window", false)) return { ...base, norms: "before" };
    throw unusable(config, "has use_sliding_window true, expected false");
  },
};
