import type { HostDrafter } from "../../draft/host_drafter.ts";
import { UsageError } from "../../errors.ts";
import { MOST_ROWS } from "../../speculate/round_shape.ts";
import { NO_PROPOSAL, type Proposal } from "../../speculate/trees.ts";
import { proposalFault } from "../device/proposals.ts";
import type { RequestState } from "./request_state.ts";

/**
 * What the host drafts for a request: nothing where it asked for no drafts or may get one token only.
 *
 * @throws UsageError for what cannot be verified.
 */
export function proposalOf(
  { name, shape, propose }: HostDrafter,
  { request, output, sequence }: Pick<RequestState, "request" | "output" | "sequence">,
  { vocabSize }: { readonly vocabSize: number },
): Proposal {
  const depth = Math.min(shape.depth, output.left - 1);
  if (request.numSteps === 0 || depth < 1) return NO_PROPOSAL;
  const proposal = propose(sequence.ids, { depth, count: shape.rows - 1 });
  const fault = proposalFault(proposal, { ...shape, vocabSize });
  if (fault === undefined) return proposal;
  throw new UsageError(`Cannot verify what the drafter "${name}" proposed: ${fault}`);
}

/** @throws UsageError where rounds of the drafter's shape cannot be built, or not so. */
export function checkDrafter(
  { name, shape }: HostDrafter,
  { simulateAcceptance }: { readonly simulateAcceptance?: readonly number[] },
): void {
  if (simulateAcceptance) {
    throw new UsageError(`Cannot draft with "${name}": acceptance is simulated for chains alone`);
  }
  const { depth, width, rows } = shape;
  const whole = [depth, width, rows].every((n) => Number.isInteger(n) && n >= 1);
  if (whole && rows > depth && rows <= MOST_ROWS) return;
  throw new UsageError(
    `Cannot draft with "${name}": its shape has depth ${depth}, width ${width} and ${rows} rows; ` +
      `they are 1 or more, and rows are depth + 1 to ${MOST_ROWS}`,
  );
}
