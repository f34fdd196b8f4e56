import type { AcceptanceModel } from "./model.ts";
import { uniformAt } from "./chance.ts";

/** A recorded round of one sequence. */
export interface RecordedChain {
  /** Drafts verified. */
  readonly drafted: number;
  /** Of these accepted. */
  readonly accepted: number;
}

const START = 21;

/**
 * Plays recorded acceptance again. A round of k drafts of which a were accepted says of a + 1 tokens
 * whether their drafts are right: a are, and the next is not, unless all k were accepted: nothing was
 * drafted for that one. A policy of the same depths gets the same rounds again, another what follows
 * from the same texts. A request begins at a recorded round that its seed chooses and goes round; or
 * with `own` request n, whose seed is n, has stream n from its beginning, and beyond its end the
 * mean.
 *
 * @param streams rounds of requests or of places in the batch, each in their order.
 */
export function replayed(
  streams: readonly (readonly RecordedChain[])[],
  { name = "replay", own = false }: { readonly name?: string; readonly own?: boolean } = {},
): AcceptanceModel {
  const all = streams.map(graded);
  const known = all.filter(({ starts }) => starts.length > 0);
  const rounds = streams.flat().filter(({ drafted }) => drafted > 0);
  const accepted = rounds.reduce((sum, round) => sum + round.accepted, 0);
  const refused = rounds.filter((round) => round.accepted < round.drafted).length;
  // The likeliest chance under censoring: successes over trials.
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

const NONE: ReturnType<typeof graded> = { chances: [], starts: [] };

/** Chances token by token, undefined where nothing was drafted for it, and where rounds begin. */
function graded(
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
