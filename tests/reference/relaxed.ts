import type { AcceptThresholds } from "../../src/speculate/accept_thresholds.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import type { Sampling } from "../../src/speculate/sampling.ts";
import { depthsOf, type Proposal } from "../../src/speculate/trees.ts";
import { distribution } from "./choose.ts";
import { exponential } from "./noise.ts";

/** Keys the coin apart from the noise of tokens. */
const COIN = 0xacce99;

/**
 * Which child is accepted, -1 for none: SGLang's tree_speculative_sampling_target_only at one node.
 *
 * @param odds the target's probability of each child's token, in order.
 * @param coin in (0, 1].
 */
export function acceptedChild(
  odds: readonly number[],
  coin: number,
  { single, acc }: AcceptThresholds,
): number {
  let sum = 0;
  return odds.findIndex((p) => {
    sum += p;
    return coin <= sum / Math.max(acc, 1e-9) || p >= single;
  });
}

/**
 * The exact probability of each child, and of none last: the coin's interval is cut where the answer
 * may change.
 */
export function acceptanceLaw(odds: readonly number[], thresholds: AcceptThresholds): number[] {
  const acc = Math.max(thresholds.acc, 1e-9);
  const sums = odds.map((_, i) => odds.slice(0, i + 1).reduce((sum, p) => sum + p, 0) / acc);
  const cuts = [0, ...sums.map((sum) => Math.min(sum, 1)), 1].toSorted((a, b) => a - b);
  const law = Array<number>(odds.length + 1).fill(0);
  cuts.slice(1).forEach((to, i) => {
    const from = cuts[i] as number;
    if (to === from) return;
    const child = acceptedChild(odds, (from + to) / 2, thresholds);
    const at = child < 0 ? odds.length : child;
    law[at] = (law[at] as number) + to - from;
  });
  return law;
}

/** What a row is relaxed with. */
export interface RelaxedRows {
  /** [rows, vocabulary] */
  readonly logits: readonly ArrayLike<number>[];
  readonly sampling: Sampling;
  /** Position of the root. */
  readonly length: number;
  readonly depth: number;
  readonly thresholds: AcceptThresholds;
  /** What the race chose at each row. */
  readonly choices: readonly number[];
}

/**
 * The choices after relaxed acceptance: kernels/sample/relax.wgsl in float64. `margin` is how near a
 * comparison came to fall the other way.
 */
export function relaxed(
  { tokens, parents }: Proposal,
  { logits, sampling, length, depth, thresholds, choices }: RelaxedRows,
): { readonly choices: readonly number[]; readonly margin: number } {
  const { temperature, seed } = sampling;
  if (temperature === 0) return { choices, margin: Infinity };
  const { single, acc } = thresholds;
  const depths = depthsOf({ tokens, parents });
  const made = [...choices];
  let margin = Infinity;
  let at = 0;
  while (true) {
    const row = logits[at] as ArrayLike<number>;
    const level = depths[at] as number;
    if (level === depth) return { choices: made, margin };
    const law = distribution(row, sampling);
    const children = [...tokens.keys()].filter((i) =>
      parents[i] === at && row[tokens[i] as number] !== -Infinity &&
      !tokens.slice(0, i).some((token, j) => parents[j] === at && token === tokens[i])
    );
    const odds = children.map((i) => law[tokens[i] as number] as number);
    const position = length + level + 1;
    const coin = ((hash32(seed, position, COIN) >>> 8) + 1) / 2 ** 24;
    odds.reduce((sum, p) => {
      const total = sum + p;
      margin = Math.min(margin, Math.abs(coin - total / Math.max(acc, 1e-9)));
      // At 0 and 1 nothing is near: p is exactly that, or is not.
      if (single > 0 && p !== 1) margin = Math.min(margin, Math.abs(p - single));
      return total;
    }, 0);
    const child = acceptedChild(odds, coin, thresholds);
    if (child >= 0) {
      at = (children[child] as number) + 1;
      made[parents[at - 1] as number] = tokens[at - 1] as number;
      continue;
    }
    const rejected = new Set(children.map((i) => tokens[i] as number));
    if (!rejected.has(made[at] as number)) return { choices: made, margin };
    const races = law.map((p, token) =>
      p > 0 && !rejected.has(token)
        ? (row[token] as number) / temperature -
          Math.log(exponential(hash32(seed, position, token)))
        : -Infinity
    );
    const [first = -Infinity, second = -Infinity] = races.toSorted((a, b) => b - a);
    if (first === -Infinity) return { choices: made, margin };
    made[at] = races.indexOf(first);
    return { choices: made, margin: Math.min(margin, first - second) };
  }
}
