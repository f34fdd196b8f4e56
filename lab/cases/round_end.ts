import { choose, lanesOf } from "../../kernels/sample/choose.ts";
import { gatheredWords } from "../../kernels/sample/gather.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import {
  canStorePartials,
  matmulPartialCount,
  matmulPartials,
} from "../../kernels/matmul/matmul_partials.ts";
import {
  slicePartialCount,
  slicePartials,
  slicePartialWords,
} from "../../kernels/sample/slice_partials.ts";
import { accept } from "../../kernels/round/round.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { WEIGHT_BYTES } from "../../src/gpu/weight_format.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { draftWords, resultWords, ROW_WORDS, SLOT_WORDS } from "../../src/model/device_layout.ts";
import { packRows } from "../../tests/kernels/rows.ts";
import type { Allocations } from "../allocations.ts";
import { copiesOf, type MicroCase } from "../case.ts";

/** The lm_head of a target. */
interface Head {
  readonly name: string;
  readonly vocab: number;
  readonly hidden: number;
}

/**
 * Which dispatches make the greedy choice: separate ones ("choose"), acceptance from slices of stored logits
 * ("slices"), or acceptance from the partial results that the head keeps ("head").
 */
type By = "choose" | "slices" | "head";

/** How a round of one sequence ends, from the head on. */
function roundEndCase({ name, vocab, hidden }: Head, by: By, rows: number): MicroCase {
  return {
    name: `round_end/${name}/${by}/${rows}`,
    make(from) {
      return copiesOf(vocab * hidden * WEIGHT_BYTES.bf16, from).map(() =>
        planOf(from, { matrix: from.matrix(vocab, hidden, "bf16"), by, rows })
      );
    },
  };
}

function planOf(
  from: Allocations,
  { matrix, by, rows }: { readonly matrix: Matrix; readonly by: By; readonly rows: number },
): Dispatch[] {
  const { rows: vocab, cols } = matrix;
  const { info, limits } = from.gpu;
  const use = { rows, tuning: tuning(info.software, limits) };
  const { rowLanes: lanes } = use.tuning;
  const x = from.random(rows * cols);
  const logits = from.random(rows * vocab);
  const partials = from.random(rows * slicePartialWords(vocab));
  const shape = { batch: 1, rows, depth: rows - 1, maxRows: rows };
  const buffers = {
    batchSlots: from.words(new Uint32Array(1)),
    rows: from.words(Uint32Array.from(packRows(Array(rows).fill({ slot: 0, live: 1 })))),
    chosen: from.words(new Uint32Array(rows)),
    drafts: from.words(new Uint32Array(draftWords(rows))),
    slots: from.words(new Uint32Array(SLOT_WORDS)),
    extend: from.words(new Uint32Array(rows * ROW_WORDS)),
    last: from.words(new Uint32Array(1)),
    results: from.words(new Uint32Array(resultWords(rows))),
  };
  const end = (partials: Operand, count: number) =>
    accept(buffers, { ...shape, greedy: { partials, count, lanes } });
  if (by === "head" && canStorePartials(matrix, use.tuning)) {
    const of = { ...use, kind: "argmax", vocab, label: "head" } as const;
    return [
      ...matmulPartials({ matrix, x, partials: logits }, of),
      end(logits, matmulPartialCount(matrix, use)),
    ];
  }
  const head = matmul({ matrix, x, out: logits }, { ...use, epilogue: "store", label: "head" });
  const slices = { kind: "argmax", rows, vocab, stride: vocab, lanes, label: "choose" } as const;
  if (by !== "choose") {
    return [
      ...head,
      slicePartials({ logits, partials }, slices),
      end(partials, slicePartialCount(vocab)),
    ];
  }
  const words = gatheredWords(vocab, lanesOf(vocab, lanes));
  const gathered = words > 0 ? from.random(rows * words) : undefined;
  return [
    ...head,
    ...choose({ ...buffers, logits, partials, gathered }, {
      count: rows,
      vocab,
      stride: vocab,
      lanes,
    }),
    accept(buffers, shape),
  ];
}

/** The ends of greedy rounds. */
export function roundEndCases(software: boolean): MicroCase[] {
  const heads: Head[] = software ? [{ name: "fledgling", vocab: 2048, hidden: 256 }] : [
    { name: "fledgling", vocab: 2048, hidden: 256 },
    { name: "qwen3-0.6b", vocab: 151_936, hidden: 1024 },
    { name: "llama-8b", vocab: 128_256, hidden: 4096 },
  ];
  return heads.flatMap((head) =>
    [1, 4, 8].flatMap((rows) =>
      (["choose", "slices", "head"] as const).map((by) => roundEndCase(head, by, rows))
    )
  );
}
