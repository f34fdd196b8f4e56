import a100 from "../../../presets/costs/a100-13b.json" with { type: "json" };
import rtx4090 from "../../../presets/costs/rtx4090-7b.json" with { type: "json" };
import glm from "../../../presets/costs/sglang-glm-4.7.json" with { type: "json" };
import qwen from "../../../presets/costs/sglang-qwen3-235b.json" with { type: "json" };
import toy from "../../../presets/costs/toy.json" with { type: "json" };
import type { COST_NAMES } from "../options/measure/simulate_flags.ts";

/** The files of presets/costs, by name. */
export const COST_PRESETS: Readonly<Record<typeof COST_NAMES[number], unknown>> = {
  toy,
  "rtx4090-7b": rtx4090,
  "a100-13b": a100,
  "sglang-qwen3-235b": qwen,
  "sglang-glm-4.7": glm,
};
