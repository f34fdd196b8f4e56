import { betaQuantile } from "../../quantiles.ts";
import { logit, sigmoid } from "../../speculate/estimate/calibration.ts";
import { hash32 } from "../../speculate/noise.ts";
import { acceptUniform, normalAt, uniformAt } from "./chance.ts";

/** How likely drafts are accepted. Plain decoding would give the same text, so it needs no model. */
export interface AcceptanceModel {
  /** The text of the user. */
  readonly name: string;
  /** After this simulated time its chances begin again; absent where they do not depend on the time. */
  readonly cycleMs?: number | undefined;
  /**
   * The model for one request.
   *
   * @param seed u32 of the request.
   * @param first position of the first token that can be drafted for it.
   */
  open(seed: number, first: number): RequestAcceptance;
}

/** How far the run is. */
export interface Progress {
  /** Simulated time. */
  readonly ms: number;
  /** Tokens of all requests so far. */
  readonly tokens: number;
}

/** What is accepted of one request's drafts. */
export interface RequestAcceptance {
  /**
   * Chance that a draft is accepted after those before it were.
   *
   * @param position of the drafted token in the sequence, prompt and output.
   * @param step which draft of its round it is, from 0.
   * @param now when its round begins.
   */
  chance(position: number, step: number, now: Progress): number;
  /** The probability that the draft's confidence predicts; absent: the true one. */
  confidence?(position: number, step: number, now: Progress): number;
}

/** What a draw by chance is for; see chance.ts. */
const [MIX, SPREAD, TOKEN, CONFIDENCE, SAMPLE] = [1, 2, 3, 4, 5];

/** Every draft with the same chance. */
export function geometric(alpha: number): AcceptanceModel {
  const request = { chance: () => alpha };
  return { name: `geometric:${alpha}`, open: () => request };
}

/**
 * By draft of the round.
 *
 * @param chances after those before it; the last one is used for all further drafts.
 */
export function byPosition(chances: readonly number[]): AcceptanceModel {
  const last = chances.at(-1) ?? 0;
  const request = { chance: (_: number, step: number) => chances[step] ?? last };
  return { name: `positions:${chances.join("/")}`, open: () => request };
}

/** Geometric with an alpha for each request, drawn from Beta(a, b). */
export function betaMixed(a: number, b: number): AcceptanceModel {
  return {
    name: `beta:${a}/${b}`,
    open(seed) {
      const alpha = betaQuantile(uniformAt(seed, 0, MIX), a, b);
      return { chance: () => alpha };
    },
  };
}

/** How much chances differ, as standard deviations of their log-odds. */
export interface Spread {
  /** Between requests. */
  readonly requests: number;
  /** Between the tokens of one. */
  readonly tokens: number;
}

/** A model whose chances differ by request and by token: logit-normal around it. */
export function spreadOut(model: AcceptanceModel, { requests, tokens }: Spread): AcceptanceModel {
  if (requests === 0 && tokens === 0) return model;
  return {
    name: `${model.name},spread=${requests},tokens=${tokens}`,
    cycleMs: model.cycleMs,
    open(seed, first) {
      const inner = model.open(seed, first);
      const own = requests * normalAt(seed, 0, SPREAD);
      const chance = (position: number, step: number, now: Progress) =>
        sigmoid(
          logit(inner.chance(position, step, now)) + own + tokens * normalAt(seed, position, TOKEN),
        );
      return { chance };
    },
  };
}

/** Whether the draft for a position is right: the same for every policy. */
export function isRight(seed: number, position: number, chance: number): boolean {
  return acceptUniform(seed, position) < chance;
}

/**
 * The draft's confidence in a token, sigmoid(logit(c) + sigma N(0, 1)). It depends on the position, not on
 * whether the draft is right: right and wrong drafts of equal chance have the same distribution.
 */
export function confidenceAt(
  { seed, position, chance, sigma }: {
    readonly seed: number;
    readonly position: number;
    readonly chance: number;
    readonly sigma: number;
  },
): number {
  const noise = sigma === 0 ? 0 : sigma * normalAt(seed, position, CONFIDENCE);
  return sigmoid(logit(chance) + noise);
}

/** How many of `depth` drafts, the first of them at a position, are right before the first wrong one. */
export function acceptedFrom(
  position: number,
  depth: number,
  { seed, request, now }: {
    readonly seed: number;
    readonly request: RequestAcceptance;
    readonly now: Progress;
  },
): number {
  for (let step = 0; step < depth; step++) {
    if (!isRight(seed, position + step, request.chance(position + step, step, now))) return step;
  }
  return depth;
}

/** The number of requests that a mean is taken over, of tokens of each, and of moments of a cycle. */
const [SAMPLES, SAMPLE_TOKENS, MOMENTS] = [512, 256, 64];

/**
 * Mean tokens that a sequence gains in a round at a depth, 1 to depth + 1. The mean is over requests of equal
 * length that are spread over the whole run. Where chances change with the time it is over equal times of a cycle,
 * which have equally many rounds.
 *
 * @param run.tokens of all requests.
 */
export function meanTokens(
  model: AcceptanceModel,
  depth: number,
  run: { readonly tokens: number; readonly seed: number },
): number {
  const { cycleMs = 0 } = model;
  const moments = cycleMs > 0 ? MOMENTS : 1;
  let sum = 0;
  for (let moment = 0; moment < moments; moment++) {
    let rounds = 0;
    let tokens = 0;
    for (let sample = moment; sample < SAMPLES; sample += moments) {
      const part = (sample + 0.5) / SAMPLES;
      const now = { ms: cycleMs * (moment + 0.5) / moments, tokens: part * run.tokens };
      const own = hash32(run.seed, sample, SAMPLE);
      const request = model.open(own, 0);
      for (let at = 0; at < SAMPLE_TOKENS;) {
        const taken = 1 + acceptedFrom(at, depth, { seed: own, request, now });
        at += taken;
        tokens += taken;
        rounds++;
      }
    }
    sum += tokens / rounds;
  }
  return sum / moments;
}
