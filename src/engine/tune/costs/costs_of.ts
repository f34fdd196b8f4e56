import type { Gpu } from "../../../gpu/device.ts";
import type { Precision } from "../../../gpu/matrix.ts";
import type { KvDtype } from "../../../gpu/kv.ts";
import type { OpenedModels } from "../../load/opened_models.ts";
import type { WeightReport } from "../../load/quantize.ts";
import { adapterKey, driverVersion } from "../tuning_file.ts";
import type { CostsOf } from "./costs_file.ts";

/** What measured costs hold for. */
export function costsOf(
  { target, draft }: Pick<OpenedModels, "target" | "draft">,
  { gpu, weights, kvDtype, precision = "f32" }: {
    readonly gpu: Pick<Gpu, "info">;
    readonly weights: WeightReport;
    readonly kvDtype: KvDtype;
    readonly precision?: Precision | undefined;
  },
): CostsOf {
  const named = (name: string, to: string | undefined) => to === undefined ? name : `${name} ${to}`;
  return {
    adapter: adapterKey(gpu.info, driverVersion()),
    model: named(
      named(target.checkpoint.name, weights.quantize),
      precision === "f16" ? "precision f16" : undefined,
    ),
    draft: draft && named(draft.checkpoint.name, weights.quantizeDraft),
    weightBytes: weights.bytes,
    kvDtype,
  };
}
