import {
  adjust,
  maskWords,
  type PenaltyBuffers,
  PROMPT,
} from "../../../../kernels/sample/adjust.ts";
import { countTokens } from "../../../../kernels/sample/count_tokens.ts";
import { choose } from "../../../../kernels/sample/choose.ts";
import { type KeptRows, logprobs, logprobWords } from "../../../../kernels/sample/logprobs.ts";
import type { Gpu } from "../../../gpu/device.ts";
import type { Dispatch, Operand } from "../../../gpu/kernel.ts";
import { resultWords } from "../../../model/device_layout.ts";
import type { Target } from "../../../model/graph/target.ts";
import { penalizes, type Sampling } from "../../../speculate/sampling.ts";
import {
  type EngineSizes,
  KEPT_ROWS_AT,
  maxDepth,
  type RoundBuffers,
  storageBuffer,
  verifyRowCount,
} from "../buffers.ts";
import { logprobCount, MAX_LOGPROBS } from "./logprobs.ts";
import type { Submission } from "../submit/submit.ts";
import { isChain, type RoundShape } from "../../../speculate/round_shape.ts";

/** What changes the target's choice besides its logits and the sampling settings. */
export interface SamplingKind {
  /** Only some tokens are allowed. */
  readonly masked: boolean;
  /** A sequence has penalties or a bias. */
  readonly penalized: boolean;
  /** Number of tokens of each row whose log-probabilities are computed; undefined: none at all. */
  readonly logprobs: number | undefined;
  /** Every sequence takes the largest logit, and nothing else has a say; default false. */
  readonly greedy?: boolean;
}

/** No masks, penalties or log-probabilities: the programs that every engine has. */
export const PLAIN_SAMPLING: SamplingKind = {
  masked: false,
  penalized: false,
  logprobs: undefined,
};

/** The same, and no sequence samples: programs that every engine has too. */
export const GREEDY_SAMPLING: SamplingKind = { ...PLAIN_SAMPLING, greedy: true };

/** What programs of a kind read and write in addition to the others. */
export interface SamplingBuffers {
  /** Logits that tokens are chosen from, laid out as the target's; undefined: the target's logits themselves. */
  readonly adjusted: Operand | undefined;
  /** Allowed tokens of each row, u32 [rows, maskWords(vocab)]. */
  readonly masks: Operand | undefined;
  readonly penalties: PenaltyBuffers | undefined;
  /** u32 [batch, tokens that a sequence may emit, logprobWords(most)] */
  readonly logprobs: { readonly buffer: GPUBuffer; readonly most: number } | undefined;
}

/** Whether nothing but logits and sampling settings decides. */
export function isPlain({ masked, penalized, logprobs }: SamplingKind): boolean {
  return !masked && !penalized && logprobs === undefined;
}

/** The kind of sampling that the sequences in these slots need. */
export function kindFor(
  choice: Pick<SamplingKinds, "isPenalized" | "draws">,
  slots: readonly number[],
  { mask, logprobs }: { readonly mask: unknown; readonly logprobs: number | undefined },
): SamplingKind {
  const kind = {
    masked: mask !== undefined,
    penalized: slots.some((slot) => choice.isPenalized(slot)),
    logprobs: logprobCount(logprobs),
  };
  const draws = slots.some((slot) => choice.draws(slot));
  return isPlain(kind) && !draws ? GREEDY_SAMPLING : kind;
}

/** The buffers of all kinds, each made when first wanted. */
export interface SamplingKinds {
  buffers(kind: SamplingKind): SamplingBuffers;
  /** What is read back in addition to the results if up to `tokens` tokens are emitted: log-probabilities. */
  read(kind: SamplingKind, tokens: number): Pick<Submission, "extra">;
  /**
   * Writes the allowed tokens of `rows` rows.
   *
   * @throws Error where they are of another size: a bug.
   */
  setMasks(masks: Uint32Array, rows: number): void;
  /** Writes the allowed tokens of rows with a mask for each row; undefined: all tokens are allowed. */
  setRowMasks(masks: readonly (Uint32Array | undefined)[]): void;
  /**
   * Writes a slot's penalties and bias; absent: it has none.
   *
   * @param promptTokens leading ids that are the prompt; absent: all.
   */
  setPenalties(slot: number, sampling?: Sampling, promptTokens?: number): void;
  /** Writes the token counts of a slot's text, which penalties use. */
  setCounts(slot: number, ids: readonly number[]): void;
  /** Whether the slot has penalties or a bias. */
  isPenalized(slot: number): boolean;
  /** Sets whether the slot's tokens are drawn; by default they are not. */
  setDraws(slot: number, draws: boolean): void;
  draws(slot: number): boolean;
}

export function openSamplingKinds(gpu: Gpu, target: Target, capacity: EngineSizes): SamplingKinds {
  const { config: { vocabSize: vocab }, weights: { head } } = target;
  const rows = verifyRowCount(capacity);
  const words = maskWords(vocab);
  const emitted = capacity.batch * (maxDepth(capacity) + 1);
  const made = new Map<string, Operand>();
  const buffer = (label: string, count: number) =>
    made.getOrInsertComputed(label, () => storageBuffer(gpu, label, count));
  const masks = () => buffer("masks", rows * words);
  const penalties = (): PenaltyBuffers => ({
    penalties: buffer("penalties", capacity.batch * PENALTY_WORDS),
    counts: buffer("counts", capacity.batch * vocab),
    bias: buffer("bias", capacity.batch * vocab),
  });
  const logprobBuffer = () => buffer("logprobs", emitted * logprobWords(MAX_LOGPROBS));
  /** Prompt tokens of the slots that have penalties or a bias. */
  const penalized = new Map<number, number>();
  const drawing = new Set<number>();
  /** Row `at` of a table. */
  const write = ({ buffer }: Operand, at: number, row: Uint32Array | Float32Array) =>
    gpu.device.queue.writeBuffer(buffer, at * row.byteLength, row as Uint32Array<ArrayBuffer>);
  return {
    buffers(kind) {
      const most = kind.logprobs;
      return {
        adjusted: kind.masked || kind.penalized ? buffer("adjusted", rows * head.rows) : undefined,
        masks: kind.masked ? masks() : undefined,
        penalties: kind.penalized ? penalties() : undefined,
        logprobs: most === undefined ? undefined : { ...logprobBuffer(), most },
      };
    },
    read({ logprobs: most }, tokens) {
      if (most === undefined) return {};
      return { extra: { ...logprobBuffer(), words: tokens * logprobWords(most) } };
    },
    setMasks(allowed, rows) {
      if (allowed.length !== rows * words) {
        throw new Error(`${allowed.length} words of masks, ${rows} rows take ${rows * words}`);
      }
      write(masks(), 0, allowed);
    },
    setRowMasks(rowMasks) {
      const allowed = new Uint32Array(rowMasks.length * words).fill(0xffffffff);
      for (const [row, mask] of rowMasks.entries()) if (mask) allowed.set(mask, row * words);
      write(masks(), 0, allowed);
    },
    setPenalties(slot, sampling, promptTokens = Infinity) {
      const on = sampling !== undefined && penalizes(sampling);
      if (!on) {
        if (penalized.delete(slot)) write(penalties().penalties, slot, penaltyWords());
        return;
      }
      penalized.set(slot, promptTokens);
      const bias = new Float32Array(vocab);
      for (const [id, value] of Object.entries(sampling.logitBias)) bias[Number(id)] = value;
      write(penalties().penalties, slot, penaltyWords(sampling));
      write(penalties().bias, slot, bias);
    },
    setCounts(slot, ids) {
      write(penalties().counts, slot, tokenCounts(vocab, ids, penalized.get(slot) ?? Infinity));
    },
    isPenalized: (slot) => penalized.has(slot),
    setDraws: (slot, draws) => void (draws ? drawing.add(slot) : drawing.delete(slot)),
    draws: (slot) => drawing.has(slot),
  };
}

/** `Penalties` of kernels/sample/adjust.wgsl. */
const PENALTY_WORDS = 4;

function penaltyWords(sampling?: Sampling): Uint32Array {
  const words = new Uint32Array(PENALTY_WORDS);
  if (sampling === undefined) return words;
  const { repetitionPenalty, frequencyPenalty, presencePenalty } = sampling;
  new Float32Array(words.buffer).set([repetitionPenalty, frequencyPenalty, presencePenalty]);
  words[PENALTY_WORDS - 1] = 1;
  return words;
}

/** Times that each token is in the output, and PROMPT where it is in the prompt. */
function tokenCounts(vocab: number, ids: readonly number[], promptTokens: number): Uint32Array {
  const counts = new Uint32Array(vocab);
  for (const [i, id] of ids.entries()) {
    const count = counts[id] ?? 0;
    counts[id] = i < promptTokens ? PROMPT : count + 1;
  }
  return counts;
}

/** Dispatches after acceptance: emitted tokens are counted, and their log-probabilities are written. */
export function afterAcceptance(
  { batchSlots, results, last }: Pick<RoundBuffers, "batchSlots" | "results" | "last">,
  { config, weights, tuning, logits }: Target,
  { shape, choice, withConfidences = false }: {
    readonly shape: RoundShape;
    readonly choice: SamplingBuffers | undefined;
    /** See `resultWords`. */
    readonly withConfidences?: boolean;
  },
): Dispatch[] {
  const { vocabSize: vocab } = config;
  const { batch, rows, depth } = shape;
  const of = { batch, resultWords: resultWords(rows, withConfidences), vocab };
  const kept: KeptRows = isChain(shape)
    ? { kind: "chain", rows }
    : { kind: "tree", last, kept: KEPT_ROWS_AT };
  const plan: Dispatch[] = [];
  if (choice?.penalties) {
    plan.push(countTokens({ batchSlots, results, counts: choice.penalties.counts }, of));
  }
  if (choice?.logprobs) {
    const { buffer, most } = choice.logprobs;
    plan.push(logprobs({ logits, results, logprobs: { buffer } }, {
      ...of,
      tokens: depth + 1,
      most,
      kept,
      stride: weights.head.rows,
      lanes: tuning.rowLanes,
    }));
  }
  return plan;
}

/** The target's choice at each of `count` rows. */
export function chooseRows(
  { config, weights, tuning, logits, partials, gathered }: Target,
  { rows, slots, chosen }: Pick<RoundBuffers, "rows" | "slots" | "chosen">,
  { count, perSlot, choice }: {
    readonly count: number;
    /** Rows of a sequence. */
    readonly perSlot: number;
    readonly choice: SamplingBuffers | undefined;
  },
): Dispatch[] {
  const { vocabSize: vocab } = config;
  const shape = { count, vocab, stride: weights.head.rows, lanes: tuning.rowLanes };
  const { adjusted, masks, penalties } = choice ?? {};
  const from = { partials, rows, slots, chosen, gathered };
  if (adjusted === undefined) return choose({ ...from, logits }, shape);
  return [
    adjust({ logits, adjusted, rows, masks, penalties }, { ...shape, perSlot }),
    ...choose({ ...from, logits: adjusted }, shape),
  ];
}
