import {
  calibrate,
  CALIBRATION_OPTIONS,
  type CalibrationOptions,
  type CalibrationWindow,
  type ConfidentChain,
  firstCalibration,
  logit,
  openWindow,
} from "../../estimate/calibration.ts";
import { type Cusum, NO_CHANGE, watch } from "../../estimate/change.ts";
import {
  countPositions,
  fadedPositions,
  noPositions,
  type PositionCounts,
  positionRates,
} from "../../estimate/positions.ts";
import { countRequests, fadedRequests, type Requests } from "../../estimate/requests.ts";
import { programRows } from "../../costs/cost_buckets.ts";
import { type RoundTimings, timeRound } from "../../estimate/round_times.ts";
import type { RoundOutcome, SequenceOutcome } from "../../policy.ts";

/** What the rounds so far say about acceptance and about time. */
export interface Evidence {
  /** Rounds learned. */
  readonly rounds: number;
  readonly positions: PositionCounts;
  readonly requests: Requests;
  /** The last chains with confidences, the newest last. */
  readonly chains: readonly ConfidentChain[];
  readonly window: CalibrationWindow;
  readonly timings: RoundTimings;
  readonly cusum: Cusum;
  /** Times that acceptance was found to have changed. */
  readonly changes: number;
}

export interface EvidenceOptions {
  readonly calibration: CalibrationOptions;
  /** Batch sizes that rounds are padded to. */
  readonly buckets: readonly number[];
}

/** The least number of recent chains that are kept as a sample of the next chains' confidences. */
const FEW_CHAINS = 16;
/** The weight that earlier counts keep when acceptance has changed. */
const AFTER_CHANGE = 0.25;

export function noEvidence(depth: number): Evidence {
  return {
    rounds: 0,
    positions: noPositions(depth),
    requests: [],
    chains: [],
    timings: [],
    window: openWindow(firstCalibration(depth)),
    cusum: NO_CHANGE,
    changes: 0,
  };
}

/** Adds a round. Impossible counts and times are left out. */
export function learnRound(
  evidence: Evidence,
  outcome: RoundOutcome,
  { calibration = CALIBRATION_OPTIONS, buckets }: Partial<EvidenceOptions> & {
    readonly buckets: readonly number[];
  },
): Evidence {
  const rounds = evidence.rounds + 1;
  const sequences = outcome.sequences.filter(isCount);
  const timings = timeRound(evidence.timings, timedRound(outcome, buckets));
  const tested = sequences.filter(({ depth }) => depth > 0);
  if (tested.length === 0) return { ...evidence, rounds, timings };
  const { cusum, changed } = watch(evidence.cusum, surprise(evidence.positions, tested));
  const known = changed ? faded(evidence, AFTER_CHANGE) : evidence;
  const chains = sampled(sequences, rounds).filter(hasConfidences).map(withLogits);
  const most = Math.max(FEW_CHAINS, chains.length);
  return {
    rounds,
    timings,
    cusum,
    changes: evidence.changes + (changed ? 1 : 0),
    positions: countPositions(known.positions, tested),
    requests: countRequests(known.requests, tested, rounds),
    chains: chains.length === 0 ? evidence.chains : lastOf(evidence.chains, chains, most),
    window: chains.length === 0 ? evidence.window : calibrate(evidence.window, chains, calibration),
  };
}

/** The same evidence, with less weight on acceptance. */
export function faded(evidence: Evidence, keep: number): Evidence {
  return {
    ...evidence,
    positions: fadedPositions(evidence.positions, keep),
    requests: fadedRequests(evidence.requests, keep),
  };
}

function isCount({ depth, accepted }: SequenceOutcome): boolean {
  return Number.isSafeInteger(depth) && Number.isSafeInteger(accepted) && accepted >= 0;
}

function hasConfidences({ confidences }: SequenceOutcome): boolean {
  return confidences.length > 0 && confidences.every((each) => each >= 0 && each <= 1);
}

/** The most chains of a round whose confidences are kept; they are a sample of the others. */
const MANY_CHAINS = 32;

/** At most MANY_CHAINS of the items, evenly spaced; the selection shifts from round to round. */
function sampled<Item>(items: readonly Item[], round: number): readonly Item[] {
  if (items.length <= MANY_CHAINS) return items;
  const stride = Math.ceil(items.length / MANY_CHAINS);
  return items.filter((_, i) => (i + round) % stride === 0);
}

function withLogits({ depth, accepted, confidences }: SequenceOutcome): ConfidentChain {
  return { depth, accepted, logits: confidences.map(logit) };
}

function lastOf(
  old: readonly ConfidentChain[],
  chains: readonly ConfidentChain[],
  most: number,
): readonly ConfidentChain[] {
  return chains.length >= most ? chains : [...old, ...chains].slice(-most);
}

/** Tolerated error of the rates, in accepted drafts a chain, and the factor on the variance of independent chains. */
const TOLERATED = 0.1;
const OVERDISPERSION = 1.5;

/** By how many standard deviations more drafts were accepted than the rates say. */
function surprise(positions: PositionCounts, sequences: readonly SequenceOutcome[]): number {
  const rates = positionRates(positions);
  const moments: { readonly mean: number; readonly variance: number }[] = [];
  let difference = 0;
  let variance = (TOLERATED * sequences.length) ** 2;
  for (const { depth, accepted } of sequences) {
    const most = Math.min(depth, rates.length);
    const usual = moments[most] ??= acceptedMoments(rates, most);
    difference += Math.min(accepted, most) - usual.mean;
    variance += OVERDISPERSION * usual.variance;
  }
  return difference / Math.sqrt(variance);
}

/** Mean and variance of the number of accepted drafts of a chain with these conditional chances. */
export function acceptedMoments(
  rates: readonly number[],
  depth: number,
): { readonly mean: number; readonly variance: number } {
  let survival = 1;
  let mean = 0;
  let square = 0;
  for (let k = 0; k < depth; k++) {
    survival *= rates[k] ?? rates.at(-1) ?? 0;
    mean += survival;
    square += (2 * k + 1) * survival;
  }
  return { mean, variance: Math.max(0, square - mean * mean) };
}

/** The timing sample of a round: its bucket, steps, verify rows, time and stored tokens. */
export function timedRound(
  { tier, batchSize, sequences, ms, drafts }: RoundOutcome,
  buckets: readonly number[],
): Parameters<typeof timeRound>[1] {
  let [verified, cells] = [0, 0];
  for (const { depth, position } of sequences) {
    verified += depth;
    cells += position;
  }
  const bucket = buckets.find((each) => each >= batchSize) ?? batchSize;
  const { depth } = tier;
  const of = { sequences: batchSize, drafts: drafts ?? verified, batch: bucket, depth };
  const rows = programRows(of);
  return { bucket, steps: depth, rows, ms: ms.round, cells };
}
