import { draftChoose } from "../../kernels/sample/draft_choose.ts";
import {
  canStorePartials,
  matmulPartialCount,
  matmulPartials,
} from "../../kernels/matmul/matmul_partials.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { PARTIAL_WORDS, type PartialKind } from "../../kernels/lib/partial.ts";
import {
  slicePartialCount,
  slicePartials,
  slicePartialWords,
} from "../../kernels/sample/slice_partials.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { WEIGHT_BYTES } from "../../src/gpu/weight_format.ts";
import { draftWords } from "../../src/model/device_layout.ts";
import type { Allocations } from "../allocations.ts";
import { copiesOf, llama, type MicroCase } from "../case.ts";

/** The lm_head of a draft. */
interface Head {
  readonly name: string;
  readonly vocab: number;
  readonly hidden: number;
}

/** How a draft step ends. */
interface Step {
  readonly kind: PartialKind;
  /** Whether the head stores logits although it could store partial results. */
  readonly stored: boolean;
  readonly batch: number;
}

/** Rows of a sequence in the widest round. */
const MAX_ROWS = 8;

function draftHeadCase({ name, vocab, hidden }: Head, step: Step): MicroCase {
  const { kind, stored, batch } = step;
  return {
    name: `draft_head/${name}/${kind}${stored ? "-stored" : ""}/${batch}`,
    make(from) {
      const bytes = vocab * hidden * WEIGHT_BYTES.bf16;
      return copiesOf(bytes, from).map(() => {
        const { plan, partials, count } = headOf(from, { vocab, hidden }, step);
        const { info, limits } = from.gpu;
        return [
          ...plan,
          draftChoose({
            partials,
            offsets: from.words(new Uint32Array(vocab)),
            batchSlots: from.words(Uint32Array.from({ length: batch }, (_, i) => i)),
            drafts: from.random(batch * draftWords(MAX_ROWS)),
          }, {
            kind,
            batch,
            count,
            step: 0,
            maxRows: MAX_ROWS,
            label: "choose",
            lanes: tuning(info.software, limits).rowLanes,
          }),
        ];
      });
    },
  };
}

/** The head as src/model/graph/draft.ts and its lowering make it. */
function headOf(
  from: Allocations,
  { vocab, hidden }: Omit<Head, "name">,
  { kind, stored, batch: rows }: Step,
) {
  const { info, limits } = from.gpu;
  const use = { rows, tuning: tuning(info.software, limits) };
  const matrix = from.matrix(vocab, hidden, "bf16");
  const x = from.random(rows * hidden);
  if (!stored && canStorePartials(matrix, use.tuning)) {
    const count = matmulPartialCount(matrix, use);
    const partials = from.random(PARTIAL_WORDS[kind] * rows * count);
    const plan = matmulPartials({ matrix, x, partials }, { ...use, kind, vocab, label: "head" });
    return { plan, partials, count };
  }
  const logits = from.random(rows * vocab);
  const partials = from.random(rows * slicePartialWords(vocab, kind));
  const slices = { kind, rows, vocab, stride: vocab, lanes: use.tuning.rowLanes, label: "choose" };
  const plan = [
    ...matmul({ matrix, x, out: logits }, { ...use, epilogue: "store", label: "head" }),
    slicePartials({ logits, partials }, slices),
  ];
  return { plan, partials, count: slicePartialCount(vocab) };
}

/** A draft's head and the choice of its tokens, with and without the draft's confidence in them. */
export function draftHeadCases(software: boolean): MicroCase[] {
  const { name, hidden, vocab, draftVocab } = llama(software);
  const heads: Head[] = [
    { name: "fledgling", vocab: 1024, hidden: 256 },
    { name, vocab: draftVocab, hidden },
    { name: `${name}-whole`, vocab, hidden },
  ];
  return heads.flatMap((head) =>
    (Object.keys(PARTIAL_WORDS) as PartialKind[]).flatMap((kind) =>
      (software ? [true] : [false, true]).flatMap((stored) =>
        [1, 32].map((batch) => draftHeadCase(head, { kind, stored, batch }))
      )
    )
  );
}
