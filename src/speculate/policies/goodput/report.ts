import { positionRates } from "../../estimate/positions.ts";
import type { PolicyReport } from "../../policy.ts";
import type { Evidence } from "./evidence.ts";

/** What is known of acceptance, by position and by confidence. */
export function acceptanceReport({ positions, window: { at }, changes }: Evidence): PolicyReport {
  const acceptance = positionRates(positions);
  return {
    json: { acceptance, calibration: { ...at }, changes },
    rows: [["acceptance", acceptance.map((rate) => rate.toFixed(2)).join(" ")]],
  };
}
