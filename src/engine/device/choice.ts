import { adjust, maskWords } from "../../../shaders/choose/adjust.ts";
import { choose } from "../../../shaders/choose/choose.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Target } from "../../model/plan/target.ts";
import { type Capacity, type RoundBuffers, storageBuffer, verifyRowCount } from "./buffers.ts";

/** What has a say in the target's choice beside its logits and sampling. */
export interface ChoiceKind {
  /** Only some tokens are allowed. */
  readonly masked: boolean;
}

/** Nothing: the programs that every engine has. */
export const PLAIN_CHOICE: ChoiceKind = { masked: false };

/** What programs of another kind read and write. */
export interface ChoiceBuffers {
  /** What tokens are chosen from, laid out as the target's logits. */
  readonly adjusted: Operand;
  /** Allowed tokens of each row, u32 [rows, maskWords(vocab)]. */
  readonly masks: Operand | undefined;
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
}

export function openChoice(gpu: Gpu, target: Target, capacity: Capacity): Choice {
  const { config: { vocabSize }, weights: { head } } = target;
  const rows = verifyRowCount(capacity);
  const words = maskWords(vocabSize);
  const made = new Map<string, Operand>();
  const buffer = (label: string, count: number) =>
    made.getOrInsertComputed(label, () => storageBuffer(gpu, label, count));
  const masks = () => buffer("masks", rows * words);
  return {
    buffers({ masked }) {
      if (!masked) return undefined;
      return { adjusted: buffer("adjusted", rows * head.rows), masks: masks() };
    },
    setMasks(allowed, rows) {
      if (allowed.length !== rows * words) {
        throw new Error(`${allowed.length} words of masks, ${rows} rows take ${rows * words}`);
      }
      const data = allowed as Uint32Array<ArrayBuffer>;
      gpu.device.queue.writeBuffer(masks().buffer, 0, data);
    },
  };
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
