import { type Calibration, logit, sigmoid } from "../../estimate/calibration.ts";
import { meanRate, positionRates } from "../../estimate/positions.ts";
import { oddsRatio, type RequestCounts, shifted } from "../../estimate/requests.ts";
import type { RoundContext } from "../../policy.ts";
import type { Evidence } from "./evidence.ts";

/**
 * The chance that draft j of each request is reached and accepted (its survival), from the request's history:
 *
 *     s_j = product over k <= j of shifted(c_k, odds ratio of the request)
 *
 * @param stride uses only every n-th request, as a sample of all.
 * @returns [ceil(batchSize / stride) * depth].
 */
export function survivalByHistory(
  { positions, requests }: Evidence,
  { batchSize, sequences }: RoundContext,
  { depth, stride = 1 }: { readonly depth: number; readonly stride?: number },
): Float64Array {
  const rates = positionRates(positions);
  const alpha = meanRate(positions);
  const known = new Map<number, RequestCounts>(requests.map((each) => [each.id, each]));
  const survivals = new Float64Array(Math.ceil(batchSize / stride) * depth);
  let at = 0;
  for (let i = 0; i < batchSize; i += stride) {
    const ratio = oddsRatio(known.get(sequences[i]?.id ?? -1), alpha);
    let survival = 1;
    for (let j = 0; j < depth; j++) {
      survival *= shifted(rates[j] ?? 0, ratio);
      survivals[at++] = survival;
    }
  }
  return survivals;
}

/**
 * The same for the last chains, from the draft's confidences; the last chains are a sample of future ones.
 * Levels that a chain did not have get the rate of all requests at that position.
 *
 * @returns [chains * depth].
 */
export function survivalByConfidence(
  evidence: Evidence,
  depth: number,
): Float64Array {
  const { positions, chains } = evidence;
  const rates = positionRates(positions);
  const at = anchored(evidence);
  const survivals = new Float64Array(chains.length * depth);
  let place = 0;
  for (const { logits } of chains) {
    let survival = 1;
    for (let j = 0; j < depth; j++) {
      const x = logits[j];
      survival *= x === undefined ? rates[j] ?? 0 : calibrated(at, x, j);
      survivals[place++] = survival;
    }
  }
  return survivals;
}

/** By how much the log-odds of a position's mean chance may differ from those of its history. */
const NEAR_HISTORY = 0.25;

/**
 * The calibration, with each intercept moved until the mean chance of the last chains at its position is near
 * the measured acceptance rate. Without this, a draft that is unusually sure or unsure would decide by its
 * uncalibrated confidences alone whether anything is drafted, and rounds without drafts teach nothing. The
 * mean is over tested drafts only, like the rate: verified drafts have higher confidences than the others.
 */
export function anchored({ positions, chains, window: { at } }: Evidence): Calibration {
  const rates = positionRates(positions);
  const intercepts = at.intercepts.map((intercept, k) => {
    let [sum, count] = [0, 0];
    for (const { logits, depth, accepted } of chains) {
      const x = logits[k];
      if (x === undefined || k > accepted || k >= depth) continue;
      sum += calibrated(at, x, k);
      count++;
    }
    const rate = rates[k];
    if (count === 0 || rate === undefined) return intercept;
    const off = logit(rate) - logit(sum / count);
    return intercept + Math.sign(off) * Math.max(0, Math.abs(off) - NEAR_HISTORY);
  });
  return { slope: at.slope, intercepts };
}

/** The chance that a draft is accepted, from the logit of its confidence and its position. */
function calibrated({ slope, intercepts }: Calibration, x: number, position: number): number {
  return sigmoid(slope * x + (intercepts[position] ?? 0));
}
