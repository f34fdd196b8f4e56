import type { SpeculationReport } from "../../src/engine/schedule/speculation.ts";
import type { SlotReport } from "../../src/speculate/policies/ema.ts";

/** The slots of SGLang's controller. */
export function slotsOf({ own }: SpeculationReport): readonly SlotReport[] {
  return own.json["slots"] as unknown as readonly SlotReport[];
}
