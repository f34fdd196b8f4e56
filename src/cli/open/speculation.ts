import { defined } from "../../defined.ts";
import { DEFAULT_PRESET, presetConfig, usage } from "../../engine/schedule/presets.ts";
import type { NamedPolicy, SpeculationChoice } from "../../engine/schedule/speculation_choice.ts";
import { treeNamed } from "../../speculate/tree_shape.ts";
import { NGRAM_RANGE, type NgramRange } from "../../draft/ngram.ts";
import { UsageError } from "../../errors.ts";
import type { ChatOptions, OpeningOptions } from "../options/options.ts";
import { policyOf } from "../options/policy_option.ts";

/** The policy that `--policy` names, else what the flags of the speculation group say. */
export function speculateOf(
  options: OpeningOptions & Partial<Pick<ChatOptions, "seed">>,
  speculating: { readonly allSteps?: boolean } = {},
): NamedPolicy | SpeculationChoice {
  return namedPolicy(options) ?? speculationOf(options, speculating);
}

/**
 * What the flags of the speculation group say. The adaptive config is read here, so that a bad one
 * is reported before anything is opened.
 *
 * @param allSteps the depth may change between requests.
 * @throws UsageError for a config that cannot be read or used.
 */
export function speculationOf(
  { adaptive, preset, adaptiveConfig, eagleTopk, numSteps, numDraftTokens, draftTree }: Pick<
    OpeningOptions,
    | "adaptive"
    | "preset"
    | "adaptiveConfig"
    | "eagleTopk"
    | "numSteps"
    | "numDraftTokens"
    | "draftTree"
  >,
  { allSteps = false }: { readonly allSteps?: boolean } = {},
): SpeculationChoice {
  const given = preset ?? adaptiveConfig;
  return {
    adaptive: adaptive || preset !== undefined,
    config: presetConfig(given ?? DEFAULT_PRESET),
    configGiven: given !== undefined,
    eagleTopk,
    numSteps,
    numDraftTokens,
    tree: draftTree === undefined || draftTree === "auto"
      ? draftTree
      : usage(() => treeNamed(draftTree), "--draft-tree: "),
    allSteps,
  };
}

/**
 * What `--policy` names: it begins with `--num-steps` and draws by `--seed`. Undefined without the flag.
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

/** How many tokens NGRAM, and HYBRID's, must and may match. */
export function ngramOf(
  { ngramMin: min = NGRAM_RANGE.min, ngramMax: max = NGRAM_RANGE.max }: Pick<
    OpeningOptions,
    "ngramMin" | "ngramMax"
  >,
): NgramRange {
  if (min <= max) return { min, max };
  throw new UsageError(`Cannot use "--ngram-min ${min}": it is more than --ngram-max ${max}`);
}
