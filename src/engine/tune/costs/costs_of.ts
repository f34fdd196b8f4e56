import type { Gpu } from "../../../gpu/device.ts";
import { DEFAULT_PRECISION, type Precision } from "../../../gpu/matrices_on_units.ts";
import type { KvDtype } from "../../../gpu/kv.ts";
import type { OpenedModels } from "../../load/opened_models.ts";
import type { WeightReport } from "../../load/quantize.ts";
import type { UnitsReport } from "../../matrices/units_report.ts";
import { adapterKey, driverVersion } from "../tuning_file.ts";
import type { CostsOf } from "./costs_file.ts";

/** What measured costs hold for. */
export function costsOf(
  { target, draft }: Pick<OpenedModels, "target" | "draft">,
  { gpu, weights, units, kvDtype, precision = DEFAULT_PRECISION }: {
    readonly gpu: Pick<Gpu, "info">;
    readonly weights: WeightReport;
    /** Absent where the device has no matrix units, or does not use them. */
    readonly units?: Pick<UnitsReport, "matrices" | "prompts"> | undefined;
    readonly kvDtype: KvDtype;
    readonly precision?: Precision | undefined;
  },
): CostsOf {
  const named = (name: string, to: string | undefined) => to === undefined ? name : `${name} ${to}`;
  return {
    adapter: adapterKey(gpu.info, driverVersion()),
    model: named(
      named(
        named(target.checkpoint.name, weights.quantize),
        precision === DEFAULT_PRECISION ? undefined : `precision ${precision}`,
      ),
      units && `${units.matrices} on units, ${units.prompts} in prompts`,
    ),
    draft: draft && named(draft.checkpoint.name, weights.quantizeDraft),
    weightBytes: weights.bytes,
    kvDtype,
  };
}
