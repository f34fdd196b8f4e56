import { packedRows } from "../../../speculate/costs/cost_buckets.ts";
import type { VerifyBudget } from "../../../speculate/policy.ts";
import { type DraftShape, isChain } from "../../../speculate/round_shape.ts";
import { isPlain, type SamplingKind } from "../choice/choice.ts";
import type { Programs } from "../programs.ts";

/** How a round gets by with fewer rows than its shape has. */
export interface Packing {
  /** Rows of the packed round; undefined: it has the rows of its shape. */
  readonly packed: number | undefined;
  /** Drafts of each sequence that are verified, or may be where there is a budget, [batch]; undefined: all. */
  readonly depths: readonly number[] | undefined;
  /** The budget by which the device chooses among the drafts; undefined: it does not choose. */
  readonly budget: VerifyBudget | undefined;
}

/** What packing reads of `RoundRequest`. */
interface PackingRequest {
  readonly shape: DraftShape;
  readonly depths?: readonly number[];
  readonly verify?: VerifyBudget;
  readonly proposals?: readonly unknown[];
}

/**
 * How the requested depths or budget are used. Rounds whose choice needs more than the logits, or that the host drafts
 * for, are not packed and use no budget. Nor is a budget used if the draft reports no confidence.
 *
 * @param of.bucket sequences that the round's programs are for.
 * @param of.rounds what rounds there may be.
 */
export function packing(
  { shape, depths, verify, proposals }: PackingRequest,
  { batch, bucket, choice, rounds: { packs, ranks } }: {
    readonly batch: number;
    readonly bucket: number;
    readonly choice: SamplingKind;
    readonly rounds: Pick<Programs, "packs" | "ranks">;
  },
): Packing {
  const { depth } = shape;
  const plain = isPlain(choice) && proposals === undefined && isChain(shape) && depth > 0;
  if (!packs || !plain || (depths ?? verify) === undefined) {
    return { packed: undefined, depths, budget: undefined };
  }
  const most = Array.from({ length: batch }, (_, i) => Math.min(depth, depths?.[i] ?? depth));
  const drafts = most.reduce((a, b) => a + b, 0);
  const budget = ranks ? verify : undefined;
  const verified = Math.min(drafts, budget?.drafts ?? drafts);
  const packed = packedRows(batch + verified, { batch: bucket, depth });
  return { packed, depths: budget ? most : depths, budget };
}
