import type { Decision } from "../../../speculate/policy.ts";
import type { RoundRequest } from "../../device/runner.ts";
import type { HostDrafter, HostProposal, RequestDrafter } from "../../../draft/host_drafter.ts";
import { UsageError } from "../../../errors.ts";
import { type DraftShape, isChain, MAX_ROWS } from "../../../speculate/round_shape.ts";
import { depthsOf, NO_PROPOSAL } from "../../../speculate/trees.ts";
import { proposalFault } from "../../device/proposals.ts";
import type { GenerateRequest } from "../events.ts";
import { type RequestState, stepsOf } from "../request_state.ts";

/** Opens the drafter for a request; undefined if nothing will be drafted for it. */
export function requestDrafter(
  drafter: HostDrafter | undefined,
  { promptIds, prediction }: Pick<GenerateRequest, "promptIds" | "prediction">,
): RequestDrafter | undefined {
  if (drafter?.predicts === "only" && prediction === undefined) return undefined;
  return drafter?.open(promptIds, prediction);
}

/**
 * What the host drafts for a request: nothing where it asked for no drafts or may get one token only.
 *
 * @param of.device tokens that the device drafts otherwise.
 * @param of.most levels that the request asks for.
 * @throws UsageError for what cannot be verified.
 */
export function proposalOf(
  { name, shapes }: Pick<HostDrafter, "name" | "shapes">,
  state: Pick<RequestState, "request" | "constraint" | "output" | "sequence" | "drafter">,
  { vocabSize, device, most = Infinity }: {
    readonly vocabSize: number;
    readonly device: number;
    readonly most?: number | undefined;
  },
): HostProposal {
  const { output, sequence, drafter } = state;
  const shape = shapes.at(-1) as DraftShape;
  const depth = Math.min(shape.depth, output.left - 1, most);
  if (drafter === undefined || stepsOf(state) === 0 || depth < 1) return NO_PROPOSAL;
  const proposal = drafter.propose(sequence.ids, { depth, count: shape.rows - 1, device });
  const fault = proposalFault(proposal, { ...shape, vocabSize });
  if (fault === undefined) return proposal;
  throw new UsageError(`Cannot verify what the drafter "${name}" proposed: ${fault}`);
}

/** Tokens that the device drafts for each request by the policy's choice. */
export function deviceSteps(
  { tier, depths }: Decision,
  states: readonly Pick<RequestState, "request" | "constraint">[],
): number[] {
  return states.map((state, i) => Math.min(stepsOf(state) ?? Infinity, depths?.[i] ?? tier.depth));
}

/** What is drafted for a sequence: by the host where there is a proposal, else by the device. */
interface Drafts {
  readonly proposal: HostProposal;
  /** Tokens that the device drafts otherwise. */
  readonly device: number;
}

/** A round that may have proposals of the host. */
export interface HostRound extends RoundRequest {
  readonly proposals?: readonly (HostProposal | undefined)[];
}

/**
 * A round that verifies the proposals, and device-drafted chains for sequences without one. Its shape is the first of
 * the drafter's that has room for all of them.
 */
export function proposedRound(
  { shapes }: Pick<HostDrafter, "shapes">,
  drafts: readonly Drafts[],
): HostRound {
  const proposals = drafts.map(({ proposal }) => proposal.tokens.length > 0 ? proposal : undefined);
  const chains = shapes.every(isChain);
  const steps = drafts.map(({ device }, i) => chains && !proposals[i] ? device : 0);
  const given = proposals.filter((proposal) => proposal !== undefined);
  const deepest = Math.max(...steps, ...given.flatMap(depthsOf));
  const most = Math.max(...given.map(({ tokens }) => tokens.length));
  const holds = ({ depth, rows }: DraftShape) => depth >= deepest && rows > most;
  const shape = shapes.find(holds) ?? shapes.at(-1) as DraftShape;
  const depths = steps.map((n) => Math.min(n, shape.depth));
  return { shape, count: 1, proposals, depths, deviceDepth: Math.max(...depths) };
}

/** @throws UsageError if rounds of the drafter's shapes cannot be built, or not with simulated acceptance. */
export function checkDrafter(
  { name, shapes }: HostDrafter,
  { simulateAcceptance }: { readonly simulateAcceptance?: readonly number[] },
): void {
  if (shapes.length === 0) throw new UsageError(`Cannot draft with "${name}": it has no shapes`);
  if (simulateAcceptance && !shapes.every(isChain)) {
    throw new UsageError(`Cannot draft with "${name}": acceptance is simulated for chains alone`);
  }
  for (const { depth, width, rows } of shapes) {
    const whole = [depth, width, rows].every((n) => Number.isInteger(n) && n >= 1);
    if (whole && rows > depth && rows <= MAX_ROWS) continue;
    throw new UsageError(
      `Cannot draft with "${name}": its shape has depth ${depth}, width ${width} and ${rows} rows; ` +
        `they are 1 or more, and rows are depth + 1 to ${MAX_ROWS}`,
    );
  }
}
