import { hash32 } from "../../src/speculate/noise.ts";
import type { Sampling } from "../../src/speculate/sampling.ts";
import { exponential } from "./noise.ts";

/**
 * The token that the target takes at one row: the reference, in float64, of kernels/sample/choose.wgsl.
 * Temperature 0 takes the largest logit; otherwise the tokens that `allowed` keeps race for the
 * largest `logit / temperature - log(E)`, E exponential noise of (seed, position, token). The
 * lowest id wins a tie.
 * @param logits One row, [vocabulary]; -Infinity rules a token out.
 * @param position Absolute position in the sequence of the token to be chosen.
 * @throws Error when a logit is NaN or +Infinity, or none is finite: a broken model, not a choice.
 */
export function choose(
  logits: ArrayLike<number>,
  sampling: Sampling,
  position: number,
): number {
  const row = checked(logits);
  if (sampling.temperature === 0) return argmax(row);
  const kept = allowed(row, sampling);
  const peak = row[argmax(row)] ?? NaN;
  return argmax(
    row.map((logit, token) => {
      if (!kept[token]) return -Infinity;
      const noise = exponential(hash32(sampling.seed, position, token));
      // Less the peak, as on the device: no overflow at a temperature near 0.
      return (logit - peak) / sampling.temperature - Math.log(noise);
    }),
  );
}

/**
 * What the target chooses from where only some tokens are allowed: the logits, minus infinity elsewhere.
 * @param mask Bit t % 32 of word t / 32 is 1 where token t is allowed.
 */
export function masked(logits: ArrayLike<number>, mask: ArrayLike<number>): number[] {
  return Array.from(logits, (logit, token) => isAllowed(mask, token) ? logit : -Infinity);
}

/**
 * What the target chooses from after bias and penalties, in this order: logit bias; repetition penalty
 * over prompt and output; frequency and presence penalty over the output.
 */
export function penalized(
  logits: ArrayLike<number>,
  sampling: Pick<
    Sampling,
    "repetitionPenalty" | "frequencyPenalty" | "presencePenalty" | "logitBias"
  >,
  { prompt, output }: { readonly prompt: readonly number[]; readonly output: readonly number[] },
): number[] {
  const { repetitionPenalty, frequencyPenalty, presencePenalty, logitBias } = sampling;
  return Array.from(logits, (logit, token) => {
    let x = logit + (logitBias[token] ?? 0);
    const times = output.filter((id) => id === token).length;
    if (times > 0 || prompt.includes(token)) {
      x = x > 0 ? x / repetitionPenalty : x * repetitionPenalty;
    }
    return x - times * frequencyPenalty - (times > 0 ? presencePenalty : 0);
  });
}

/** Whether a token's bit is set in a row's mask. */
export function isAllowed(mask: ArrayLike<number>, token: number): boolean {
  return ((mask[token >>> 5] ?? 0) >>> (token & 31) & 1) === 1;
}

/**
 * Which tokens may be chosen, [vocabulary]. Top-k keeps logits of at least the k-th largest (all
 * ties with it). Of these, their probabilities scaled to sum to 1, top-p keeps a token while the
 * sum of the strictly more probable ones is less than top_p. Of these, min-p keeps those with at
 * least min_p times the largest probability.
 */
export function allowed(logits: ArrayLike<number>, sampling: Sampling): boolean[] {
  const row = checked(logits);
  const { temperature, topK, topP, minP } = sampling;
  const best = argmax(row);
  if (temperature === 0) return row.map((_, token) => token === best);
  const peak = row[best] ?? NaN;
  const weight = (logit: number) => Math.exp((logit - peak) / temperature);

  const falling = row.toSorted((a, b) => b - a);
  const atLeast = topK > 0 ? falling[Math.min(topK, row.length) - 1] ?? NaN : -Infinity;
  const survivors = falling.filter((logit) => logit >= atLeast);
  const threshold = topP < 1 ? nucleus(survivors, weight, topP) : atLeast;
  return row.map((logit) => logit !== -Infinity && logit >= threshold && weight(logit) >= minP);
}

/** The natural logarithm of each token's probability, [vocabulary]: log softmax. */
export function logprobs(logits: ArrayLike<number>): number[] {
  const row = checked(logits);
  const peak = row[argmax(row)] ?? NaN;
  const mass = Math.log(sum(row.map((logit) => Math.exp(logit - peak))));
  return row.map((logit) => logit - peak - mass);
}

/** Probability of each token under `sampling`, [vocabulary], summing to 1: the law of `choose`. */
export function distribution(logits: ArrayLike<number>, sampling: Sampling): number[] {
  const row = checked(logits);
  const kept = allowed(row, sampling);
  if (sampling.temperature === 0) return kept.map(Number);
  const peak = row[argmax(row)] ?? NaN;
  const weights = row.map((logit, token) =>
    kept[token] ? Math.exp((logit - peak) / sampling.temperature) : 0
  );
  const total = sum(weights);
  return weights.map((weight) => weight / total);
}

/** The smallest logit of the top-p set; `falling` holds the candidates, largest first. */
function nucleus(
  falling: readonly number[],
  weight: (logit: number) => number,
  topP: number,
): number {
  const enough = topP * sum(falling.map(weight));
  let least = Infinity;
  let above = 0;
  let running = 0;
  for (const logit of falling) {
    // Equal logits share the sum of what lies above them all, so they stay or go together.
    if (logit !== least) above = running;
    // The most probable token always stays, whatever top_p.
    if (above >= enough && least !== Infinity) break;
    least = logit;
    running += weight(logit);
  }
  return least;
}

function checked(logits: ArrayLike<number>): number[] {
  const row = Array.from(logits);
  const broken = row.findIndex((logit) => Number.isNaN(logit) || logit === Infinity);
  if (broken >= 0) {
    throw new Error(`Cannot choose from "logits": token ${broken} has ${row[broken]}`);
  }
  if (row.every((logit) => logit === -Infinity)) {
    throw new Error(`Cannot choose from "logits": no token of ${row.length} is possible`);
  }
  return row;
}

/** The first index of the largest value. */
function argmax(values: readonly number[]): number {
  return values.reduce((best, value, index) => value > (values[best] ?? NaN) ? index : best, 0);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
