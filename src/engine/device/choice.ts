import { adjust, maskWords, type PenaltyBuffers, PROMPT } from "../../../shaders/adjust/adjust.ts";
import { countTokens } from "../../../shaders/adjust/count_tokens.ts";
import { choose } from "../../../shaders/choose/choose.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { resultWords } from "../../model/plan/rows_layout.ts";
import type { Target } from "../../model/plan/target.ts";
import { penalizes, type Sampling } from "../../speculate/sampling.ts";
import { type Capacity, type RoundBuffers, storageBuffer, verifyRowCount } from "./buffers.ts";

/** What has a say in the target's choice beside its logits and sampling. */
export interface ChoiceKind {
  /** Only some tokens are allowed. */
  readonly masked: boolean;
  /** A sequence has penalties or a bias. */
  readonly penalized: boolean;
}

/** Nothing: the programs that every engine has. */
export const PLAIN_CHOICE: ChoiceKind = { masked: false, penalized: false };

/** What programs of another kind read and write. */
export interface ChoiceBuffers {
  /** What tokens are chosen from, laid out as the target's logits. */
  readonly adjusted: Operand;
  /** Allowed tokens of each row, u32 [rows, maskWords(vocab)]. */
  readonly masks: Operand | undefined;
  readonly penalties: PenaltyBuffers | undefined;
}

/** The buffers of all kinds, each made when first wanted. */
export interface Choice {
  /** Undefined for the plain kind. */
  buffers(kind: ChoiceKind): ChoiceBuffers | undefined;
  /**
   * Writes the allowed tokens of `rows` rows.
   *
   * @throws Error where they are of another size: a bug.
   */
  setMasks(masks: Uint32Array, rows: number): void;
  /** Writes a slot's penalties and bias; absent: it has none. */
  setPenalties(slot: number, sampling?: Sampling): void;
  /** Writes what is counted of a slot's text, of which the first tokens are the prompt. */
  setCounts(slot: number, ids: readonly number[], promptTokens: number): void;
  /** Whether the slot has any. */
  isPenalized(slot: number): boolean;
}

export function openChoice(gpu: Gpu, target: Target, capacity: Capacity): Choice {
  const { config: { vocabSize: vocab }, weights: { head } } = target;
  const rows = verifyRowCount(capacity);
  const words = maskWords(vocab);
  const made = new Map<string, Operand>();
  const buffer = (label: string, count: number) =>
    made.getOrInsertComputed(label, () => storageBuffer(gpu, label, count));
  const masks = () => buffer("masks", rows * words);
  const penalties = (): PenaltyBuffers => ({
    penalties: buffer("penalties", capacity.batch * PENALTY_WORDS),
    counts: buffer("counts", capacity.batch * vocab),
    bias: buffer("bias", capacity.batch * vocab),
  });
  const penalized = new Set<number>();
  /** Row `at` of a table. */
  const write = ({ buffer }: Operand, at: number, row: Uint32Array | Float32Array) =>
    gpu.device.queue.writeBuffer(buffer, at * row.byteLength, row as Uint32Array<ArrayBuffer>);
  return {
    buffers(kind) {
      if (!kind.masked && !kind.penalized) return undefined;
      return {
        adjusted: buffer("adjusted", rows * head.rows),
        masks: kind.masked ? masks() : undefined,
        penalties: kind.penalized ? penalties() : undefined,
      };
    },
    setMasks(allowed, rows) {
      if (allowed.length !== rows * words) {
        throw new Error(`${allowed.length} words of masks, ${rows} rows take ${rows * words}`);
      }
      write(masks(), 0, allowed);
    },
    setPenalties(slot, sampling) {
      const on = sampling !== undefined && penalizes(sampling);
      if (!on) {
        if (penalized.delete(slot)) write(penalties().penalties, slot, penaltyWords());
        return;
      }
      penalized.add(slot);
      const bias = new Float32Array(vocab);
      for (const [id, value] of Object.entries(sampling.logitBias)) bias[Number(id)] = value;
      write(penalties().penalties, slot, penaltyWords(sampling));
      write(penalties().bias, slot, bias);
    },
    setCounts(slot, ids, promptTokens) {
      write(penalties().counts, slot, tokenCounts(vocab, ids, promptTokens));
    },
    isPenalized: (slot) => penalized.has(slot),
  };
}

/** `Penalties` of shaders/adjust/penalty.wgsl. */
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

/** Counts what was emitted, where a sequence has penalties. */
export function countEmitted(
  { batchSlots, results }: Pick<RoundBuffers, "batchSlots" | "results">,
  { config: { vocabSize: vocab } }: Target,
  { batch, rows, choice }: {
    readonly batch: number;
    /** Of a sequence. */
    readonly rows: number;
    readonly choice: ChoiceBuffers | undefined;
  },
): Dispatch[] {
  if (choice?.penalties === undefined) return [];
  const { counts } = choice.penalties;
  const of = { batch, resultWords: resultWords(rows), vocab };
  return [countTokens({ batchSlots, results, counts }, of)];
}

/** The target's choice at each of `count` rows. */
export function chooseRows(
  { config, weights, tuning, logits, partials }: Target,
  { rows, slots, chosen }: Pick<RoundBuffers, "rows" | "slots" | "chosen">,
  { count, perSlot, choice }: {
    readonly count: number;
    /** Rows of a sequence. */
    readonly perSlot: number;
    readonly choice: ChoiceBuffers | undefined;
  },
): Dispatch[] {
  const { vocabSize: vocab } = config;
  const shape = { count, vocab, stride: weights.head.rows, lanes: tuning.rowLanes };
  const from = choice?.adjusted ?? logits;
  return [
    ...choice ? [adjust({ ...choice, logits, rows }, { ...shape, perSlot })] : [],
    ...choose({ logits: from, partials, rows, slots, chosen }, shape),
  ];
}
