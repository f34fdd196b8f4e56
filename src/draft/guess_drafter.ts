import { chain } from "../speculate/round_shape.ts";
import { chainOf, NO_PROPOSAL } from "../speculate/trees.ts";
import { expectedTokens, type Guess, type Guesser, type TextGuesser } from "./guess.ts";
import type { HostDrafter, HostProposal, RequestDrafter } from "./host_drafter.ts";
import { predictedText } from "./prediction.ts";
import { kindOfClaim, type TrackRecord, trackRecord } from "./track_record.ts";

/** The assumed acceptance of the device's drafts before any was verified. */
const DEVICE_PRIOR = 0.7;

/**
 * Factor by which a guess must promise more tokens than the device's drafts: the larger of two estimates is
 * likelier to be too large, and a round of guesses says nothing about the device's time.
 */
const MARGIN = 1.15;

/** Depths of the rounds for shorter chains, which save verify rows that would not be used. */
const DEPTHS = [1, 3, 7, 15, 31];

/**
 * Proposes the guess with the most tokens expected to be accepted, if that is more than the device's drafts
 * promise. The probabilities that a guesser claims are corrected by how often such claims were right: after
 * each round all guesses, also those that were not proposed, are compared with the new text. The device's
 * drafts are counted when they were verified. A request's prediction is one more guesser.
 *
 * @param depth most tokens of a proposal.
 */
export function guessDrafter(
  name: string,
  guessers: readonly Guesser[],
  { depth }: { readonly depth: number },
): HostDrafter {
  const records = guessers.map(() => trackRecord());
  const predictedRecord = trackRecord();
  const deviceRecord = trackRecord();
  return {
    name,
    shapes: [...DEPTHS.filter((each) => each < depth), depth].map(chain),
    meanwhile: () => guessers.forEach(({ meanwhile }) => meanwhile?.()),
    predicts: guessers.length > 0 || "only",
    open(promptIds, prediction) {
      const sources = guessers.map((guesser, i): Source => ({
        text: guesser.open(promptIds),
        record: trackRecord(records[i]),
      }));
      // The prediction comes first, so it wins ties.
      if (prediction !== undefined) {
        sources.unshift({
          text: predictedText(prediction, promptIds.length),
          record: trackRecord(predictedRecord),
          predicted: true,
        });
      }
      return requestDrafter(sources, trackRecord(deviceRecord));
    },
  };
}

/** A guesser for one request, with its track record. */
interface Source {
  readonly text: TextGuesser;
  readonly record: TrackRecord;
  /** See HostProposal. */
  readonly predicted?: true;
}

function requestDrafter(sources: readonly Source[], device: TrackRecord): RequestDrafter {
  let guesses: readonly Guess[] = [];
  let seen = 0;
  return {
    propose(ids, { count, depth, device: drafted }) {
      const added = ids.slice(seen);
      sources.forEach(({ record }, i) => guesses[i] && grade(guesses[i], added, record));
      guesses = sources.map(({ text }) => text.guess(ids, Math.min(count, depth)));
      seen = ids.length;
      let found: HostProposal = NO_PROPOSAL;
      let most = MARGIN * expectedOfDevice(device, Math.min(drafted, depth));
      for (const [i, { record, predicted }] of sources.entries()) {
        const { tokens, chances } = guesses[i] as Guess;
        const expected = expectedTokens(
          chances.map((chance) => record.rate(kindOfClaim(chance), chance)),
        );
        if (expected.sum <= most) continue;
        [found, most] = [
          { ...chainOf(tokens.slice(0, expected.count)), ...predicted && { predicted } },
          expected.sum,
        ];
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

/** Compares a guess with the new tokens, up to the first wrong one, and records the results. */
function grade({ tokens, chances }: Guess, added: readonly number[], record: TrackRecord): void {
  for (const [i, token] of added.slice(0, tokens.length).entries()) {
    const right = token === tokens[i];
    record.learn(kindOfClaim(chances[i] as number), right);
    if (!right) return;
  }
}
