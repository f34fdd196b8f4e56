import { defined } from "../../defined.ts";
import type { NamedPolicy, SpeculationChoice } from "../../engine/schedule/speculation_choice.ts";
import { PolicyError } from "../../speculate/policy.ts";
import { type DraftShape, MAX_ROWS, MAX_TOPK } from "../../speculate/round_shape.ts";
import { treeNamed } from "../../speculate/tree_shape.ts";
import { reason, UsageError } from "../../errors.ts";
import type { ChatOptions, OpeningOptions } from "../options/options.ts";
import { isWholeTree, policyOf } from "../options/policy_option.ts";

/** The policy that `--policy` names, else what the flags of the speculation group say. */
export function speculateOf(
  options: OpeningOptions & Partial<Pick<ChatOptions, "seed">>,
  speculating: { readonly allSteps?: boolean } = {},
): NamedPolicy | SpeculationChoice {
  return namedPolicy(options) ?? speculationOf(options, speculating);
}

/**
 * The shape of each round's drafts.
 *
 * @param allSteps the depth may change between requests.
 * @throws UsageError for a tree that cannot be drafted.
 */
export function speculationOf(
  { numSteps, draftTree }: Pick<OpeningOptions, "numSteps" | "draftTree">,
  { allSteps = false }: { readonly allSteps?: boolean } = {},
): SpeculationChoice {
  return { numSteps, ...treeOf(draftTree), allSteps };
}

type Tree = Pick<SpeculationChoice, "tree" | "eagleTopk" | "numDraftTokens">;

const PARTS = { topk: MAX_TOPK, tokens: MAX_ROWS } as const;

/** What `--draft-tree` says: a whole tree, or parts of one. @throws UsageError */
export function treeOf(text: string | undefined): Tree {
  if (text === undefined || text === "auto") return { tree: text };
  if (isWholeTree(text)) return { tree: namedTree(text) };
  const parts = new Map<string, number>();
  for (const part of text.split(",")) {
    const [, key = "", value = ""] = /^(topk|tokens)=(\d+)$/.exec(part.trim()) ?? [];
    const most = PARTS[key as keyof typeof PARTS] ?? 0;
    if (Number(value) < 1 || Number(value) > most) {
      throw new UsageError(
        `Cannot use "--draft-tree ${text}": allowed is topk from 1 to ${MAX_TOPK} and tokens from ` +
          `1 to ${MAX_ROWS}`,
      );
    }
    parts.set(key, Number(value));
  }
  return { eagleTopk: parts.get("topk"), numDraftTokens: parts.get("tokens") };
}

/** A whole tree, as `--draft-tree` has it. @throws UsageError */
export function namedTree(text: string): DraftShape {
  try {
    return treeNamed(text);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    throw new UsageError(`Cannot use "--draft-tree ${text}": ${reason(error)}`, { cause: error });
  }
}

/**
 * The policy that `--policy` names; it starts at `--num-steps` and is seeded by `--seed`. Undefined without
 * the flag.
 *
 * @throws UsageError for a policy or options that cannot be used.
 */
export function namedPolicy(
  { policy, numSteps, seed }:
    & Pick<OpeningOptions, "policy" | "numSteps">
    & Partial<Pick<ChatOptions, "seed">>,
): NamedPolicy | undefined {
  return policy === undefined ? undefined : {
    ...policyOf(policy),
    ...defined({ numSteps, seed }),
  };
}
