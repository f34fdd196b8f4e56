/** What lib/rows.wgsl says about rows and pages, for the host. */

/** u32 words of one `Row`: token, position, slot, cell, base, live, two zeros, path. */
export const ROW_WORDS = 12;
/** Most cells from a row's `base` to its own cell, both included. */
export const PATH_CELLS = 16;
/** Tokens a KV page. */
export const PAGE = 16;
/** A place of the batch without a sequence. */
export const NO_SLOT = 0xffffffff;
/** What is chosen where the logits were not numbers. */
export const NOT_A_TOKEN = 0xffffffff;
