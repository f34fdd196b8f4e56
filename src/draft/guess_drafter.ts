import { chain } from "../speculate/round_shape.ts";
import { NO_PROPOSAL, type Proposal } from "../speculate/trees.ts";
import { expectedTokens, type Guess, type Guesser } from "./guess.ts";
import type { HostDrafter, RequestDrafter } from "./host_drafter.ts";
import { kindOfClaim, type TrackRecord, trackRecord } from "./track_record.ts";

/** How probable a draft of the device is before any was verified. */
const DEVICE_PRIOR = 0.7;

/**
 * What a guess must promise for each token that the device promises: the larger of two estimates is
 * likelier too large, and a round of guesses tells nothing of the device.
 */
const MARGIN = 1.15;

/** Depths of the rounds that hold shorter chains: rows of verification that nobody needs cost time. */
const DEPTHS = [1, 3, 7, 15, 31];

/**
 * Proposes the guess from which most tokens are expected to be accepted, where that is more than the
 * device's drafts promise. What a guesser claims is corrected by how often such claims were right:
 * after each round all guesses are compared with the text that came, those that were not proposed
 * too. The device's drafts count where they were verified.
 *
 * @param depth most tokens of a proposal.
 */
export function guessDrafter(
  name: string,
  guessers: readonly Guesser[],
  { depth }: { readonly depth: number },
): HostDrafter {
  const records = guessers.map(() => trackRecord());
  const deviceRecord = trackRecord();
  return {
    name,
    shapes: [...DEPTHS.filter((each) => each < depth), depth].map(chain),
    meanwhile: () => guessers.forEach(({ meanwhile }) => meanwhile?.()),
    open: (promptIds) =>
      requestDrafter({
        sources: guessers.map((guesser, i) => ({
          text: guesser.open(promptIds),
          record: trackRecord(records[i]),
        })),
        device: trackRecord(deviceRecord),
      }),
  };
}

function requestDrafter({ sources, device }: {
  readonly sources: readonly {
    readonly text: ReturnType<Guesser["open"]>;
    readonly record: TrackRecord;
  }[];
  readonly device: TrackRecord;
}): RequestDrafter {
  let guesses: readonly Guess[] = [];
  let seen = 0;
  return {
    propose(ids, { count, depth, device: drafted }) {
      const came = ids.slice(seen);
      sources.forEach(({ record }, i) => guesses[i] && grade(guesses[i], came, record));
      guesses = sources.map(({ text }) => text.guess(ids, Math.min(count, depth)));
      seen = ids.length;
      let found = NO_PROPOSAL;
      let most = MARGIN * expectedOfDevice(device, Math.min(drafted, depth));
      for (const [i, { record }] of sources.entries()) {
        const { tokens, chances } = guesses[i] as Guess;
        const expected = expectedTokens(
          chances.map((chance) => record.rate(kindOfClaim(chance), chance)),
        );
        if (expected.sum > most) [found, most] = [chainOf(tokens, expected.count), expected.sum];
      }
      return found;
    },
    learn({ drafted, accepted }) {
      for (let step = 0; step < Math.min(accepted + 1, drafted); step++) {
        device.learn(step, step < accepted);
      }
    },
    close: (ids) => sources.forEach(({ text }) => text.close?.(ids)),
  };
}

function expectedOfDevice(record: TrackRecord, drafted: number): number {
  const chances = Array.from({ length: drafted }, (_, step) => record.rate(step, DEVICE_PRIOR));
  return expectedTokens(chances).sum;
}

/** Learns from the tokens that came: up to the first that was not guessed. */
function grade({ tokens, chances }: Guess, came: readonly number[], record: TrackRecord): void {
  for (const [i, token] of came.slice(0, tokens.length).entries()) {
    const right = token === tokens[i];
    record.learn(kindOfClaim(chances[i] as number), right);
    if (!right) return;
  }
}

function chainOf(tokens: readonly number[], count: number): Proposal {
  const kept = tokens.slice(0, count);
  return { tokens: kept, parents: kept.map((_, i) => i) };
}
