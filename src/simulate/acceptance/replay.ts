import type { AcceptanceModel } from "./model.ts";
import { uniformAt } from "./chance.ts";

/** A recorded round of one sequence. */
export interface RecordedChain {
  /** Drafts verified. */
  readonly drafted: number;
  /** How many of these were accepted. */
  readonly accepted: number;
}

const START = 21;

/**
 * Replays recorded acceptance. A round with a of k drafts accepted covers a + 1 tokens: the drafts of the first
 * a are right. The next draft is wrong, or unknown if all k were accepted, because nothing was drafted for that
 * token. A policy with the same depths gets the same rounds again; another policy gets what follows from the
 * same texts. A request begins at a recorded round chosen by its seed and wraps around at the end. With `own`,
 * request n, whose seed is n, replays stream n from its beginning and gets the mean beyond its end.
 *
 * @param streams rounds of requests or of places in the batch, each in their order.
 */
export function replayed(
  streams: readonly (readonly RecordedChain[])[],
  { name = "replay", own = false }: { readonly name?: string; readonly own?: boolean } = {},
): AcceptanceModel {
  const all = streams.map(tested);
  const known = all.filter(({ starts }) => starts.length > 0);
  const rounds = streams.flat().filter(({ drafted }) => drafted > 0);
  const accepted = rounds.reduce((sum, round) => sum + round.accepted, 0);
  const refused = rounds.filter((round) => round.accepted < round.drafted).length;
  // The maximum-likelihood chance of censored chains: successes over trials.
  const alpha = accepted + refused === 0 ? 0 : accepted / (accepted + refused);
  return {
    name,
    open(seed, first) {
      const { chances: its } = own ? all[seed] ?? NONE : NONE;
      if (own) {
        return {
          chance: (position) => its[position - first] ?? alpha,
          confidence: () => alpha,
        };
      }
      const stream = known[Math.floor(known.length * uniformAt(seed, 0, START))];
      if (stream === undefined) return { chance: () => alpha };
      const { chances, starts } = stream;
      const begin = starts[Math.floor(starts.length * uniformAt(seed, 1, START))] ?? 0;
      return {
        chance(position) {
          const at = (begin + position - first) % chances.length;
          return chances[at < 0 ? at + chances.length : at] ?? alpha;
        },
        confidence: () => alpha,
      };
    },
  };
}

const NONE: ReturnType<typeof tested> = { chances: [], starts: [] };

/** The chance of each token, undefined if nothing was drafted for it, and the tokens at which rounds begin. */
function tested(
  rounds: readonly RecordedChain[],
): { readonly chances: readonly (number | undefined)[]; readonly starts: readonly number[] } {
  const chances: (number | undefined)[] = [];
  const starts: number[] = [];
  for (const { drafted, accepted } of rounds) {
    if (drafted === 0) {
      chances.push(undefined);
      continue;
    }
    starts.push(chances.length);
    for (let i = 0; i < accepted; i++) chances.push(1);
    chances.push(accepted < drafted ? 0 : undefined);
  }
  return { chances, starts };
}
