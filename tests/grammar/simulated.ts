/** Decoding under a grammar without a model: choices are a function of the text so far and a seed. */
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import type { Grammars } from "../../src/grammar/grammars.ts";
import { allows } from "../../src/grammar/matcher.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { NO_PROPOSAL, pathTo, type Proposal } from "../../src/speculate/trees.ts";
import type { TokenBytes } from "../../src/text/token_bytes.ts";
import { acceptTree } from "../reference/trees.ts";
import { EOS, VOCAB_SIZE } from "./vocabulary.ts";

export interface Simulated {
  readonly ids: readonly number[];
  readonly text: string;
  readonly finished: "stop" | "length";
  readonly rounds: number;
  /** Verified drafts; `accepted` counts those that were accepted. */
  readonly drafted: number;
  readonly accepted: number;
}

/** How the rounds of a simulation draft. */
export type Drafting = "none" | "forced" | "chains" | "trees";

/**
 * @param of.seed different seeds give different texts.
 * @param of.drafting drafts are the ones that the grammar forces, or random and often illegal.
 */
export async function simulate(
  grammars: Pick<Grammars, "open">,
  grammar: Grammar,
  tokens: TokenBytes,
  { seed, drafting, most = 300, ignoreEos = false }: {
    readonly seed: number;
    readonly drafting: Drafting;
    readonly most?: number;
    readonly ignoreEos?: boolean;
  },
): Promise<Simulated> {
  const { bytes } = tokens;
  const likely = likelyOf(tokens);
  const constraint = await grammars.open(grammar, { ignoreEos });
  const ids: number[] = [];
  let [rounds, drafted, accepted] = [0, 0, 0];
  let finished: Simulated["finished"] | undefined;
  const words = VOCAB_SIZE / 32;

  const take = (token: number) => {
    ids.push(token);
    constraint.take(token);
    const ended = !ignoreEos && token === EOS;
    if (ended || constraint.complete) finished = "stop";
    else if (ids.length >= most) finished = "length";
  };
  const at = (path: readonly number[], mask: Uint32Array) =>
    chosen([...ids, ...path], mask, { seed, likely });

  take(at([], constraint.mask));
  while (finished === undefined) {
    const proposal = constraint.pruned(draft(drafting, {
      forced: () => constraint.forced(7),
      next: (path) => at(path, ANYTHING),
      mix: hash32(ids.length, seed, 5),
    }));
    const masks = new Uint32Array((proposal.tokens.length + 1) * words);
    constraint.fill(proposal, masks);
    const choices = [0, ...proposal.tokens].map((_, row) => {
      const path = pathTo(proposal, row).slice(1).map((r) => proposal.tokens[r - 1] as number);
      return at(path, masks.subarray(row * words, (row + 1) * words));
    });
    const round = acceptTree(proposal, choices);
    rounds++;
    drafted += proposal.tokens.length;
    accepted += round.accepted;
    for (const id of round.ids) if (finished === undefined) take(id);
  }
  constraint.close();
  const all = ids.filter((id) => id !== EOS).flatMap((id) => [...bytes[id] as Uint8Array]);
  const text = new TextDecoder().decode(Uint8Array.from(all));
  return { ids, text, finished, rounds, drafted, accepted };
}

const ANYTHING = new Uint32Array(VOCAB_SIZE / 32).fill(0xffffffff);

/** One of the allowed tokens at random. Tokens that end something are more likely, so that texts end. */
function chosen(
  path: readonly number[],
  mask: Uint32Array,
  { seed, likely }: { readonly seed: number; readonly likely: ReadonlySet<number> },
): number {
  const state = path.slice(-4).reduce(
    (sum, id) => hash32(sum, id, 7),
    hash32(path.length, seed, 3),
  );
  let [best, most] = [-1, -1];
  for (let token = 0; token < VOCAB_SIZE; token++) {
    if (!allows(mask, token)) continue;
    const noise = hash32(state, token, 11) / 2 ** 32 + (likely.has(token) ? 0.25 : 0);
    if (noise > most) [best, most] = [token, noise];
  }
  if (best < 0) throw new Error(`no token is allowed after ${path.join()}`);
  return best;
}

/** The end token and the tokens that end strings, lists and objects. */
function likelyOf({ bytes }: TokenBytes): ReadonlySet<number> {
  const ends = ['"', "}", "]", ","].map((text) => text.charCodeAt(0));
  const ids = bytes.keys().filter((id) =>
    bytes[id]?.length === 1 && ends.includes(Number(bytes[id]))
  );
  return new Set([EOS, ...ids]);
}

function draft(
  drafting: Drafting,
  { forced, next, mix }: {
    readonly forced: () => Proposal;
    /** The token that would be chosen without a grammar. */
    readonly next: (path: readonly number[]) => number;
    readonly mix: number;
  },
): Proposal {
  if (drafting === "none") return NO_PROPOSAL;
  if (drafting === "forced") return forced();
  const tokens: number[] = [];
  const parents: number[] = [];
  const begin = forced();
  const width = drafting === "trees" ? 3 : 1;
  for (let i = 0; i < 6; i++) {
    // The first levels follow the forced tokens; later levels are arbitrary.
    const along = i < (mix & 3) ? begin.tokens[i] : undefined;
    parents.push(width === 1 || i === 0 ? i : hash32(mix, i, 1) % (i + 1));
    tokens.push(along ?? (i % 3 === 1 ? next(tokens) : hash32(mix, i, 2) % VOCAB_SIZE));
  }
  return { tokens, parents };
}
