import { allocate } from "../../src/simulate/run/allocation.ts";
import type { CostTable } from "../../src/speculate/costs/table.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import type { Policy, VerifyBudget } from "../../src/speculate/policy.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { contextOf } from "./rounds.ts";

/** Laws of the next token over a vocabulary of two, given a request's number and its tokens so far. */
export interface Toy {
  target(request: number, ids: readonly number[]): Law;
  draft(request: number, ids: readonly number[]): Law;
  /** The law of the first LENGTH tokens of both requests under the target, [4 ** LENGTH]. */
  readonly law: readonly number[];
}

export type Law = readonly [number, number];

/** Tokens of each request. */
export const LENGTH = 2;
const REQUESTS = 2;

/** A drafted chain, with the draft's law at each of its positions. */
export interface DraftedChain {
  readonly tokens: readonly number[];
  readonly laws: readonly Law[];
}

/** Chooses how many drafts of each chain are verified. */
export type Cut = (chains: readonly DraftedChain[], budget: VerifyBudget) => readonly number[];

/** Ranks drafts as the device does: by the highest probability at each position. */
export function byHighest(chains: readonly DraftedChain[], budget: VerifyBudget): number[] {
  return allocate(chains.map(({ laws }) => laws.map((law) => Math.max(...law))), budget);
}

/** Ranks drafts by the probabilities of the sampled tokens, which the device must not do. */
export function bySampled(chains: readonly DraftedChain[], budget: VerifyBudget): number[] {
  return allocate(
    chains.map(({ laws, tokens }) => laws.map((law, j) => law[tokens[j] ?? 0] ?? 0)),
    budget,
  );
}

/** Toys whose laws depend on all earlier tokens of the request. */
export function toys(count: number): Toy[] {
  return Array.from({ length: count }, (_, seed) => {
    const law = (model: number) => (request: number, ids: readonly number[]): Law => {
      const key = ids.reduce((key, id) => key * 3 + id + 1, request + 1);
      const first = (1 + hash32(seed, key, model) % 15) / 16;
      return [first, 1 - first];
    };
    const target = law(1);
    const joint = sequences(LENGTH * REQUESTS).map((ids) =>
      ids.reduce((chance, id, at) => {
        const request = Math.floor(at / LENGTH);
        return chance * (target(request, ids.slice(request * LENGTH, at))[id] ?? 0);
      }, 1)
    );
    return { target, draft: law(2), law: joint };
  });
}

/** All token sequences of a length, in numeric order with the first token as the highest digit. */
function sequences(length: number): number[][] {
  return Array.from(
    { length: 2 ** length },
    (_, n) => Array.from({ length }, (_, i) => (n >> (length - 1 - i)) & 1),
  );
}

/** The law of one token if the drafted token itself decides whether it is verified. */
export function cutLaw(
  { p, q }: { readonly p: readonly number[]; readonly q: readonly number[] },
  verifies: (token: number) => boolean,
): number[] {
  const law = p.map(() => 0);
  const rest = residual(p, q);
  for (const [token, chance] of q.entries()) {
    const kept = verifies(token) ? Math.min(1, (p[token] ?? 0) / chance) : 0;
    law[token] = (law[token] ?? 0) + chance * kept;
    const other = verifies(token) ? rest : p;
    for (const i of law.keys()) law[i] = (law[i] ?? 0) + chance * (1 - kept) * (other[i] ?? 0);
  }
  return law;
}

/** norm((p - q)+). It is zero for equal laws, where nothing is ever rejected. */
function residual(p: readonly number[], q: readonly number[]): number[] {
  const rest = p.map((each, i) => Math.max(0, each - (q[i] ?? 0)));
  const sum = rest.reduce((sum, each) => sum + each, 0);
  return rest.map((each) => sum > 0 ? each / sum : 0);
}

interface Branch {
  readonly chance: number;
  readonly state: unknown;
  /** The tokens of each request. */
  readonly ids: readonly (readonly number[])[];
}

/** The law of the first LENGTH tokens of both requests, decoded under a policy by rejection sampling. */
export function outputLaw(
  toy: Toy,
  policy: Policy,
  { state, cut, ranks, costs }: {
    readonly state: unknown;
    readonly cut: Cut;
    readonly ranks: boolean;
    readonly costs?: CostTable;
  },
): number[] {
  const law = Array<number>(2 ** (LENGTH * REQUESTS)).fill(0);
  const nothing = Array.from({ length: REQUESTS }, () => []);
  const open: Branch[] = [{ chance: 1, state, ids: nothing }];
  for (let branch = open.pop(); branch !== undefined; branch = open.pop()) {
    const running = branch.ids.flatMap((ids, id) => ids.length < LENGTH ? [id] : []);
    if (running.length === 0) {
      const digits = branch.ids.flatMap((ids) => ids.slice(0, LENGTH));
      const place = digits.reduce((place, id) => place * 2 + id, 0);
      law[place] = (law[place] ?? 0) + branch.chance;
    } else open.push(...nextRound(branch, running, { toy, policy, cut, ranks, costs }));
  }
  return law;
}

function nextRound(
  { chance, state, ids }: Branch,
  running: readonly number[],
  { toy, policy, cut, ranks, costs }: {
    readonly toy: Toy;
    readonly policy: Policy;
    readonly cut: Cut;
    readonly ranks: boolean;
    readonly costs: CostTable | undefined;
  },
): Branch[] {
  const context = contextOf(running.length, {
    costs,
    ranks,
    sequences: running.map((id) => ({
      id,
      position: 8 + (ids[id]?.length ?? 0),
      depth: undefined,
      accepted: [],
      lag: 0,
    })),
  });
  const { tier: { depth }, depths, verify } = policy.pick(state, context);
  const found: Branch[] = [];
  for (const drafted of product(running.map((id) => drafts(toy, id, ids[id] ?? [], depth)))) {
    const chains = drafted.map(({ value }) => value);
    const verified = verify ? cut(chains, verify) : depths ?? chains.map(() => depth);
    const tested = chains.map((chain, i) =>
      verdicts(toy, { request: running[i] ?? 0, ids: ids[running[i] ?? 0] ?? [] }, {
        chain,
        depth: verified[i] ?? 0,
      })
    );
    for (const outcome of product(tested)) {
      const sequences = outcome.map(({ value: { accepted } }, i) => ({
        id: running[i] ?? 0,
        asked: undefined,
        depth: verified[i] ?? 0,
        accepted,
        confidences: ranks ? (chains[i]?.laws ?? []).map((law) => Math.max(...law)) : [],
        position: 8,
      }));
      const ms = { round: 1, catchUp: 0 };
      const tier = chain(depth);
      const round = { tier, batchSize: running.length, sequences, ms };
      found.push({
        chance: chance * weight(drafted) * weight(outcome),
        state: policy.learn(state, round).state,
        ids: ids.map((own, id) => {
          const at = running.indexOf(id);
          return at < 0 ? own : [...own, ...outcome[at]?.value.tokens ?? []];
        }),
      });
    }
  }
  return found.filter((branch) => branch.chance > 0);
}

interface Weighed<T> {
  readonly value: T;
  readonly chance: number;
}

function weight(all: readonly Weighed<unknown>[]): number {
  return all.reduce((product, { chance }) => product * chance, 1);
}

/** The Cartesian product of the lists. */
function product<T>(lists: readonly (readonly T[])[]): T[][] {
  return lists.reduce<T[][]>(
    (all, list) => all.flatMap((before) => list.map((each) => [...before, each])),
    [[]],
  );
}

/** Every chain that may be drafted after these tokens. */
function drafts(
  { draft }: Toy,
  request: number,
  ids: readonly number[],
  depth: number,
): Weighed<DraftedChain>[] {
  return sequences(depth).map((tokens) => {
    const laws = tokens.map((_, j) => draft(request, [...ids, ...tokens.slice(0, j)]));
    const chance = tokens.reduce((chance, id, j) => chance * (laws[j]?.[id] ?? 0), 1);
    return { value: { tokens, laws }, chance };
  });
}

/** The possible outcomes of verifying a chain's first `depth` drafts (Leviathan et al. 2023), with the bonus token. */
function verdicts(
  { target }: Toy,
  { request, ids }: { readonly request: number; readonly ids: readonly number[] },
  { chain: { tokens, laws }, depth }: { readonly chain: DraftedChain; readonly depth: number },
): Weighed<{ readonly tokens: readonly number[]; readonly accepted: number }>[] {
  const found: Weighed<{ readonly tokens: readonly number[]; readonly accepted: number }>[] = [];
  let reached = 1;
  for (let j = 0; j <= depth; j++) {
    const kept = tokens.slice(0, j);
    const p = target(request, [...ids, ...kept]);
    const q = laws[j];
    const id = tokens[j];
    const last = j === depth || q === undefined || id === undefined;
    const keeps = last ? 0 : Math.min(1, (p[id] ?? 0) / (q[id] ?? 1));
    for (const [token, chance] of (last ? p : residual(p, q)).entries()) {
      const value = { tokens: [...kept, token], accepted: j };
      found.push({ value, chance: reached * (1 - keeps) * chance });
    }
    reached *= keeps;
  }
  return found;
}
