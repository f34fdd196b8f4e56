import type { Gpu } from "../../../gpu/device.ts";
import { DEFAULT_PRECISION, type Precision } from "../../../gpu/matrices_on_units.ts";
import { quantizedUnits } from "../../../gpu/matrix_unit.ts";
import { methodOf } from "../../../model/report/parameters.ts";
import type { KvDtype } from "../../../gpu/kv.ts";
import type { OpenedModels } from "../../load/opened_models.ts";
import type { WeightReport } from "../../load/quantize.ts";
import { adapterKey, driverVersion } from "../tuning_file.ts";
import type { CostsOf } from "./costs_file.ts";

/** What measured costs hold for. */
export function costsOf(
  { target, draft }: Pick<OpenedModels, "target" | "draft">,
  { gpu, weights, kvDtype, precision = DEFAULT_PRECISION, maxBatch = 1 }: {
    readonly gpu: Pick<Gpu, "info"> & Partial<Pick<Gpu, "matrixUnit">>;
    readonly weights: WeightReport;
    readonly kvDtype: KvDtype;
    readonly precision?: Precision | undefined;
    readonly maxBatch?: number | undefined;
  },
): CostsOf {
  const named = (name: string, to: string | undefined) => to === undefined ? name : `${name} ${to}`;
  const quantized = weights.quantize ?? methodOf(target.checkpoint);
  const { dense, experts, fp4Experts } = quantizedUnits(maxBatch);
  const units = quantized !== undefined && gpu.matrixUnit
    ? `units ${dense}, experts ${experts}, fp4 ${fp4Experts}`
    : undefined;
  return {
    adapter: adapterKey(gpu.info, driverVersion()),
    model: named(
      named(
        named(target.checkpoint.name, weights.quantize),
        precision === DEFAULT_PRECISION ? undefined : `precision ${precision}`,
      ),
      units,
    ),
    draft: draft && named(draft.checkpoint.name, weights.quantizeDraft),
    weightBytes: weights.bytes,
    kvDtype,
  };
}
