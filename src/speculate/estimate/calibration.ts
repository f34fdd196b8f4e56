import { tested, type TestedChain } from "./counts.ts";

/**
 * The chance that a draft is accepted where all before it were, from the draft's confidence at its
 * position: sigmoid(slope * logit(confidence) + intercepts[position]).
 */
export interface Calibration {
  readonly slope: number;
  /** [most drafts]. */
  readonly intercepts: readonly number[];
}

/**
 * A calibration and sums over a window of rounds: the gradient of the log likelihood and its negative second
 * derivatives. No sample belongs to two intercepts, so their mixed derivatives are 0 and not stored.
 */
export interface CalibrationWindow {
  readonly at: Calibration;
  /** Rounds in the window. */
  readonly rounds: number;
  /** Samples by position; the sums below are over them too. */
  readonly samples: readonly number[];
  readonly slopeGradient: number;
  readonly slopeCurvature: number;
  readonly gradients: readonly number[];
  readonly curvatures: readonly number[];
  /** Second derivatives by the slope and each intercept. */
  readonly crossed: readonly number[];
}

export interface CalibrationOptions {
  /** Rounds of a window. */
  readonly rounds: number;
  /** A window ends earlier if it has this many samples. */
  readonly samples: number;
  /** Added to each second derivative. */
  readonly ridge: number;
  /** A step is scaled by n / (n + damping), n the samples of its parameter. */
  readonly damping: number;
}

/** vLLM's. */
export const CALIBRATION_OPTIONS: CalibrationOptions = {
  rounds: 100,
  samples: Infinity,
  ridge: 1e-3,
  damping: 50,
};

/** vLLM's constants to begin with. */
export function firstCalibration(depth: number): Calibration {
  return { slope: 0.5, intercepts: Array<number>(depth).fill(-0.2) };
}

export function openWindow(at: Calibration): CalibrationWindow {
  const zeros = at.intercepts.map(() => 0);
  return {
    at,
    rounds: 0,
    slopeGradient: 0,
    slopeCurvature: 0,
    samples: zeros,
    gradients: zeros,
    curvatures: zeros,
    crossed: zeros,
  };
}

/** A chain with the draft's confidences. */
export interface ConfidentChain extends TestedChain {
  /** `logit` of each, verified or not. */
  readonly logits: readonly number[];
}

/** Probabilities are clamped to this and 1 less this, as in kernels/round/allocate.wgsl: their log-odds are finite. */
const MIN = 1e-6;

/** Log-odds ln(p / (1 - p)) of a clamped probability. */
export function logit(probability: number): number {
  const held = Math.min(1 - MIN, Math.max(MIN, probability));
  return Math.log(held / (1 - held));
}

export function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}

/**
 * Adds the chains of a round. Only tested positions count: the accepted drafts and the first rejected one.
 * At the end of a window the calibration takes one damped Newton step, and a new window begins.
 */
export function calibrate(
  window: CalibrationWindow,
  chains: readonly ConfidentChain[],
  options: CalibrationOptions = CALIBRATION_OPTIONS,
): CalibrationWindow {
  const next = summed(window, chains);
  const all = next.samples.reduce((sum, count) => sum + count, 0);
  if (next.rounds < options.rounds && all < options.samples) return next;
  return openWindow(stepped(next, options));
}

function summed(window: CalibrationWindow, chains: readonly ConfidentChain[]): CalibrationWindow {
  const { at: { slope, intercepts } } = window;
  const samples = [...window.samples];
  const gradients = [...window.gradients];
  const curvatures = [...window.curvatures];
  const crossed = [...window.crossed];
  let { slopeGradient, slopeCurvature } = window;
  for (const chain of chains) {
    const { logits } = chain;
    const counts = tested(chain);
    if (counts === undefined) continue;
    const reached = Math.min(counts.hits + counts.misses, logits.length, intercepts.length);
    for (let k = 0; k < reached; k++) {
      const x = logits[k] as number;
      const chance = sigmoid(slope * x + (intercepts[k] as number));
      const error = (k < counts.hits ? 1 : 0) - chance;
      const curvature = chance * (1 - chance);
      samples[k] = (samples[k] as number) + 1;
      gradients[k] = (gradients[k] as number) + error;
      curvatures[k] = (curvatures[k] as number) + curvature;
      crossed[k] = (crossed[k] as number) + curvature * x;
      slopeGradient += error * x;
      slopeCurvature += curvature * x * x;
    }
  }
  const sums = { samples, gradients, curvatures, crossed, slopeGradient, slopeCurvature };
  return { ...sums, at: window.at, rounds: window.rounds + 1 };
}

/** The most that a parameter changes in one step; it also stays within its range. */
const LONGEST_STEP = 2;
const SLOPES = [0.05, 4] as const;
const INTERCEPTS = [-8, 8] as const;

/**
 * Newton's step (H + ridge) step = gradient, each parameter's part scaled by n / (n + damping). H has
 * entries in the slope's row and column and on the diagonal alone, so the slope's step comes first:
 *
 *     step_slope = (g - sum_k h_k g_k / d_k) / (H - sum_k h_k^2 / d_k),    step_k = (g_k - h_k step_slope) / d_k
 */
function stepped(window: CalibrationWindow, { ridge, damping }: CalibrationOptions): Calibration {
  const { at, samples, gradients, curvatures, crossed } = window;
  let gradient = window.slopeGradient;
  let curvature = window.slopeCurvature + ridge;
  for (const [k, own] of curvatures.entries()) {
    const shared = crossed[k] as number;
    gradient -= shared * (gradients[k] as number) / (own + ridge);
    curvature -= shared * shared / (own + ridge);
  }
  const scaled = (step: number, count: number) =>
    Math.max(-LONGEST_STEP, Math.min(LONGEST_STEP, step)) * count / (count + damping);
  // If all confidences are equal, slope and intercepts are not determined separately.
  const slope = gradient / Math.max(curvature, ridge);
  const intercepts = at.intercepts.map((old, k) => {
    const step = ((gradients[k] as number) - (crossed[k] as number) * slope) /
      ((curvatures[k] as number) + ridge);
    return within(old + scaled(step, samples[k] as number), INTERCEPTS);
  });
  const all = samples.reduce((sum, count) => sum + count, 0);
  return { slope: within(at.slope + scaled(slope, all), SLOPES), intercepts };
}

function within(x: number, [least, most]: readonly [number, number]): number {
  return Math.min(most, Math.max(least, x));
}
