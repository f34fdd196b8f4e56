// What lib/expert_choice.wgsl promises, in plain numbers.

import type { Routing } from "../../kernels/experts/route.ts";

/** Best first; of equals the lower number. */
function ranked(values: readonly number[]): number[] {
  return values.map((value, i) => ({ value, i }))
    .toSorted((a, b) => b.value - a.value || a.i - b.i).map(({ i }) => i);
}

/**
 * A row's experts and weights, as tools/goldens/NOTES.md has the formulas; then the `shared` ones, each
 * with a weight of 1, or of the sigmoid of `gate`.
 */
export function routed(
  logits: readonly number[],
  bias: readonly number[],
  { shared = 0, gate, ...of }: Routing & {
    readonly shared?: number;
    readonly gate?: number | undefined;
  },
): { readonly experts: number[]; readonly weights: number[] } {
  const peak = Math.max(...logits);
  const all = logits.reduce((sum, logit) => sum + Math.exp(logit - peak), 0);
  const scores = logits.map((logit) =>
    of.scores === "sigmoid" ? 1 / (1 + Math.exp(-logit)) : Math.exp(logit - peak) / all
  );
  const choices = scores.map((score, e) => score + (of.scores === "softmax" ? 0 : bias[e] ?? 0));
  const size = of.numExperts / of.groups;
  const groups = Array.from(
    { length: of.groups },
    (_, g) =>
      choices.slice(g * size, (g + 1) * size).toSorted((a, b) => b - a).slice(0, of.groupBest)
        .reduce((sum, choice) => sum + choice, 0),
  );
  const kept = new Set(ranked(groups).slice(0, of.topGroups));
  const left = choices.map((choice, e) => kept.has(Math.floor(e / size)) ? choice : -Infinity);
  const experts = ranked(left).slice(0, of.topK);
  const chosen = experts.map((e) => scores[e] ?? NaN);
  const sum = of.normalize ? chosen.reduce((total, score) => total + score, 0) + 1e-20 : 1;
  const always = Array.from({ length: shared }, (_, s) => of.numExperts + s);
  return {
    experts: [...experts, ...always],
    weights: [
      ...chosen.map((score) => score / sum * of.scale),
      ...always.map(() => gate === undefined ? 1 : 1 / (1 + Math.exp(-gate))),
    ],
  };
}
