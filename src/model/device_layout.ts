/**
 * What host and shaders agree on: word offsets of the WGSL structs in kernels/lib/rows.wgsl and
 * of the result in accept_commit.wgsl, the tokens of a KV page, and the rows of a prefill chunk.
 */

export { NO_SLOT, PAGE, PATH_CELLS, ROW_WORDS } from "../../kernels/lib/rows.ts";

/** The words of a row whose token directly follows those in the cells before it. */
export function chainRow(token: number, slot: number, cell: number): Uint32Array {
  return Uint32Array.of(token, cell, slot, cell, cell + 1, 1, 0, 0, 0, 0, 0, 0);
}

/**
 * u32 words of one `Slot`: length, pending token, seed, top_k, temperature, top_p, min_p, limit,
 * stops, most tokens, three of padding.
 */
export const SLOT_WORDS = 20;
export const SLOT_SEED = 2;
export const SLOT_LIMIT = 7;
export const SLOT_STOPS = 8;
export const SLOT_MAX_TOKENS = 16;
/** Token ids that end a sequence on the device. */
export const MAX_STOPS = 8;

/** A sequence's result begins with the number of emitted tokens; the tokens begin at this word. */
export const RESULT_CHOICES = 1;

/** Where the drafts begin in the result of a sequence of `rows` rows. */
export function resultDrafts(rows: number): number {
  return RESULT_CHOICES + rows;
}

/** Where results with confidences have the number of verified drafts, followed by the draft's confidences. */
export function resultVerified(rows: number): number {
  return resultDrafts(rows) + rows - 1;
}

/**
 * u32 words that the result of a sequence of `rows` rows takes: count, tokens emitted, drafts.
 *
 * @param withConfidences whether it includes confidences, see kernels/round/accept_commit.wgsl.
 */
export function resultWords(rows: number, withConfidences = false): number {
  return resultVerified(rows) + (withConfidences ? rows : 0);
}

/**
 * Returns how many u32 words the drafts of a slot of at most `rows` rows take: the number of drafts to
 * verify, their tokens, their parents' rows. See kernels/lib/drafts.wgsl.
 */
export function draftWords(rows: number): number {
  return DRAFT_TOKENS + 2 * (rows - 1);
}
/** Word at which a slot's draft tokens begin. */
export const DRAFT_TOKENS = 1;

/** As the number of drafts to verify: all of the round. */
export const ALL_DRAFTS = 0xffffffff;

/** Rows of a prompt chunk, and the fewest rows of a chunk while other sequences wait for it. */
export const PREFILL_ROWS = 256;

/**
 * Rows of a prompt chunk for mixtures without matrix units, where each expert has few rows: of 256 rows an expert of
 * Qwen3.6-35B-A3B has 8 on average, and 512 rows take 82 ms instead of 91 (H200, q8). On matrix units it applies if
 * all sequences together cannot have more tokens.
 */
export const WIDE_PREFILL_ROWS = 512;

/**
 * Rows of a prompt chunk on matrix units. Small models fill a GPU better with so many rows. Also, where units compute
 * attention, each forward converts all keys and values that its slot has stored to f16. On an H200 the matmuls of
 * Llama-3.1-8B reach 116 TFLOP/s with 512 rows, 100 with 256.
 */
export const LONG_PREFILL_ROWS = 1024;

/** Tokens of context kept when neither the model nor the user asks for fewer. */
export const DEFAULT_CONTEXT = 8192;
