import { chain } from "../round_shape.ts";
import { type PolicyKind, policyKind } from "./kind.ts";
import type { Decision } from "../policy.ts";
import { readOptions } from "./fields.ts";

const PLAIN: Decision = { tier: chain(0) };

/** Never drafts, whatever a request asks for: plain decoding, the baseline of other policies. */
export const OFF: PolicyKind<null> = policyKind({
  examples: [{}],
  adapts: false,
  check(given) {
    readOptions(given, []);
    return null;
  },
  make: () => ({
    tiers: [PLAIN.tier],
    start: null,
    pick: () => PLAIN,
    holds: () => Infinity,
    learn: (state: null) => ({ state }),
    report: () => ({ json: {}, rows: [] }),
  }),
});
