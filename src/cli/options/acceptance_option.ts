import type { AcceptThresholds } from "../../speculate/accept_thresholds.ts";
import type { RejectionRule } from "../../speculate/rejection_rule.ts";
import { decimal } from "./decimal.ts";

/** Which drafts are accepted. */
export interface AcceptanceRule {
  /** Rejection sampling; undefined: a draft is accepted where the target chooses the same token. */
  readonly rejection?: RejectionRule;
  /** SGLang's thresholds; one that was not given is undefined. */
  readonly relaxed?: Partial<AcceptThresholds>;
}

/** What `--acceptance` accepts, as a phrase. */
export const ACCEPTANCE_TEXT = "exact, token, block, or relaxed:single=P,acc=P from 0 to 1";

/** A rule as `--acceptance` takes it; undefined for anything else. */
export function acceptanceOf(text: string | undefined): AcceptanceRule | undefined {
  if (text === "exact") return {};
  if (text === "token" || text === "block") return { rejection: text };
  const given = /^relaxed:(.*)$/.exec(text ?? "")?.[1];
  if (given === undefined) return undefined;
  const relaxed: { single?: number; acc?: number } = {};
  for (const part of given.split(",")) {
    const [, key, value = ""] = /^(single|acc)=(.+)$/.exec(part.trim()) ?? [];
    const number = decimal(value);
    if (key === undefined || !(number >= 0 && number <= 1)) return undefined;
    relaxed[key as "single" | "acc"] = number;
  }
  return { relaxed };
}
