/** What one round of verification adds to the sequence. */
export interface Acceptance {
  /** Drafts accepted, 0 to the number of drafts. */
  readonly accepted: number;
  /** The accepted drafts and then the bonus token: always `accepted + 1` ids. */
  readonly ids: readonly number[];
}

/**
 * Accepts drafts while they are what the target itself chose.
 *
 * `choices[j]` is the target's token after the committed text and the first j drafts, so it is
 * right as long as those drafts are. Each id is the target's own choice on the text before it, with
 * noise of its position: the output is that of decoding without drafts, whatever the drafts are.
 *
 * Source: https://arxiv.org/abs/2408.07978, drafter-invariant speculative decoding
 *
 * @param drafts Chain of drafted ids, [num_steps].
 * @param choices The target's id at each row, [num_steps + 1].
 * @throws Error when there is not one choice more than there are drafts.
 */
export function acceptChain(
  drafts: readonly number[],
  choices: readonly number[],
): Acceptance {
  if (choices.length !== drafts.length + 1) {
    throw new Error(
      `Cannot accept "${drafts.length} drafts": ${choices.length} choices, expected one more`,
    );
  }
  const rejected = drafts.findIndex((draft, step) => draft !== choices[step]);
  const accepted = rejected < 0 ? drafts.length : rejected;
  return { accepted, ids: choices.slice(0, accepted + 1) };
}
