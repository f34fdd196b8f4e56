import { PolicyError } from "./policy.ts";
import { chain, type DraftShape } from "./round_shape.ts";
import { automaticTree, treeShape } from "./tree_shape.ts";

/** The command line's settings for the draft shape of every round; undefined if not given. */
export interface ShapeArguments {
  /** The kind of draft; NONE without one. */
  readonly algorithm: string;
  /** Architecture of the target, as config.json names it. */
  readonly architecture: string;
  readonly numSteps?: number | undefined;
  readonly eagleTopk?: number | undefined;
  readonly numDraftTokens?: number | undefined;
  /** Steps, topk and draft tokens together; "auto" is SGLang's choice for `architecture`. */
  readonly tree?: DraftShape | "auto" | undefined;
}

/** SGLang's automatic num_steps for architectures without a better one. */
export const DEFAULT_NUM_STEPS = 3;

const ADJUSTED_DRAFT_TOKENS =
  "the draft tokens of --draft-tree are not used: a chain verifies its steps and one row more";

/**
 * The shape that every round has, as SGLang's `speculative_hook` chooses it.
 *
 * @throws PolicyError for parts that do not go together, or a tree that cannot be drafted.
 */
export function fixedShape(
  args: ShapeArguments,
): { readonly tier: DraftShape; readonly warnings: readonly string[] } {
  const { algorithm, eagleTopk = 1, numDraftTokens, tree, architecture } = args;
  if (tree && algorithm !== "NONE") {
    refuseBeside(args);
    return {
      tier: tree === "auto" ? automaticTree(algorithm, architecture) : tree,
      warnings: [],
    };
  }
  if (args.numSteps === undefined && algorithm !== "NONE") refuseWithoutSteps(args);
  const numSteps = args.numSteps ?? (algorithm === "NONE" ? 0 : DEFAULT_NUM_STEPS);
  if (eagleTopk > 1 && numSteps > 0) {
    const tier = treeShape({ depth: numSteps, width: eagleTopk, rows: numDraftTokens });
    return { tier, warnings: [] };
  }
  // A chain has a row for each draft and one for the token before them.
  const wrong = numDraftTokens !== undefined && numDraftTokens !== numSteps + 1;
  return { tier: chain(numSteps), warnings: wrong ? [ADJUSTED_DRAFT_TOKENS] : [] };
}

/** Refuses --num-steps beside a whole tree, which has its own steps. */
function refuseBeside({ numSteps }: ShapeArguments): void {
  if (numSteps === undefined) return;
  throw new PolicyError(
    `Cannot use "--num-steps ${numSteps}" with --draft-tree: the tree has its own steps`,
  );
}

/** As SGLang: without num_steps all three are chosen automatically. */
function refuseWithoutSteps({ eagleTopk, numDraftTokens }: ShapeArguments): void {
  const part = eagleTopk !== undefined
    ? `topk=${eagleTopk}`
    : numDraftTokens !== undefined
    ? `tokens=${numDraftTokens}`
    : undefined;
  if (part === undefined) return;
  throw new PolicyError(
    `Cannot use "--draft-tree ${part}" without --num-steps: all three are chosen, or none`,
  );
}
