/**
 * How rejection sampling verifies a chain of drafts.
 * token: one by one (Leviathan et al. 2023); block: as a whole (Sun et al. 2024), which keeps at
 * least as many.
 */
export type RejectionRule = typeof REJECTION_RULES[number];

export const REJECTION_RULES = ["token", "block"] as const;
