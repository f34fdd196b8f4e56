import { gatheredWords } from "../../kernels/sample/gather.ts";
import { choose } from "../../kernels/sample/choose.ts";
import { draftChoose } from "../../kernels/sample/draft_choose.ts";
import {
  slicePartialCount,
  slicePartials,
  slicePartialWords,
} from "../../kernels/sample/slice_partials.ts";
import { rmsNorm } from "../../kernels/norm/rms_norm.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { draftWords } from "../../src/model/device_layout.ts";
import { packRows, packSlots } from "../../tests/kernels/rows.ts";
import type { Allocations } from "../allocations.ts";
import { llama, type MicroCase } from "../case.ts";

/** Rows of a sequence in the widest round. */
const MAX_ROWS = 8;

const COUNTS = [1, 4, 8, 16];

function lanesOf({ gpu: { info, limits } }: Allocations): number {
  return tuning(info.software, limits).rowLanes;
}

function normCase(
  { name, hidden: cols }: { name: string; hidden: number },
  rows: number,
): MicroCase {
  return {
    name: `rms_norm/${name}/${rows}`,
    make(from) {
      const lanes = lanesOf(from);
      const [x, weight] = [from.random(rows * cols), from.random(cols)];
      const out = from.random(rows * cols);
      return [rmsNorm({ from: { x }, weight, out }, { rows, cols, eps: 1e-5, lanes, label: name })];
    },
  };
}

const SAMPLINGS = [
  { name: "greedy", temperature: 0 },
  { name: "temperature", temperature: 0.7 },
  { name: "top-p", temperature: 0.7, topP: 0.95 },
  { name: "top-k-top-p", temperature: 0.7, topK: 40, topP: 0.95 },
] as const;

function chooseCase(
  { name, ...sampling }: typeof SAMPLINGS[number],
  vocab: number,
  count: number,
): MicroCase {
  return {
    name: `choose/${name}/${vocab}/${count}`,
    make(from) {
      const lanes = lanesOf(from);
      const logits = from.random(count * vocab);
      const rows = from.words(new Uint32Array(packRows(Array(count).fill({}))));
      const slots = from.words(new Uint32Array(packSlots([sampling])));
      const chosen = from.random(count);
      const partials = from.random(count * slicePartialWords(vocab));
      const shape = { count, vocab, stride: vocab, lanes };
      const words = count * gatheredWords(vocab, lanes);
      const gathered = words > 0 ? from.random(words) : undefined;
      return [choose({ logits, partials, rows, slots, chosen, gathered }, shape)];
    },
  };
}

function draftChooseCase(
  { name, draftVocab: vocab }: { name: string; draftVocab: number },
  batch: number,
): MicroCase {
  return {
    name: `draft_choose/${name}/${batch}`,
    make(from) {
      const logits = from.random(batch * vocab);
      const partials = from.random(batch * slicePartialWords(vocab));
      const offsets = from.words(new Uint32Array(vocab));
      const slots = Uint32Array.from({ length: batch }, (_, i) => i);
      const lanes = from.words(slots);
      const drafts = from.random(batch * draftWords(MAX_ROWS));
      const shape = { kind: "argmax", lanes: lanesOf(from), label: name } as const;
      const slices = { ...shape, rows: batch, vocab, stride: vocab };
      const choice = {
        ...shape,
        batch,
        count: slicePartialCount(vocab),
        step: 0,
        maxRows: MAX_ROWS,
      };
      return [[
        slicePartials({ logits, partials }, slices),
        draftChoose({ partials, offsets, batchSlots: lanes, drafts }, choice),
      ]];
    },
  };
}

/** Kernels with one workgroup for each row. */
export function rowCases(software: boolean): MicroCase[] {
  return [
    ...COUNTS.map((rows) => normCase(llama(software), rows)),
    ...[1, 8].map((batch) => draftChooseCase(llama(software), batch)),
    ...[128_256, 151_936].flatMap((vocab) =>
      SAMPLINGS.flatMap((sampling) => [1, 8].map((count) => chooseCase(sampling, vocab, count)))
    ),
  ];
}
