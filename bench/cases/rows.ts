import { choose } from "../../shaders/choose.ts";
import { rmsNorm } from "../../shaders/rms_norm.ts";
import { tuning } from "../../src/gpu/matrix.ts";
import { packRows, packSlots } from "../../tests/shaders/rows.ts";
import { llama, type MicroCase } from "../case.ts";

const COUNTS = [1, 4, 8, 16];

function normCase(
  { name, hidden: cols }: { name: string; hidden: number },
  rows: number,
): MicroCase {
  return {
    name: `rms_norm/${name}/${rows}`,
    make(from) {
      const { rowLanes: lanes } = tuning(from.gpu.info.software);
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
      const { rowLanes: lanes } = tuning(from.gpu.info.software);
      const logits = from.random(count * vocab);
      const rows = from.words(new Uint32Array(packRows(Array(count).fill({}))));
      const slots = from.words(new Uint32Array(packSlots([sampling])));
      const chosen = from.random(count);
      return [[choose({ logits, rows, slots, chosen }, { count, vocab, stride: vocab, lanes })]];
    },
  };
}

/** Kernels that take a row a workgroup. */
export function rowCases(software: boolean): MicroCase[] {
  return [
    ...COUNTS.map((rows) => normCase(llama(software), rows)),
    ...SAMPLINGS.flatMap((sampling) => [1, 8].map((count) => chooseCase(sampling, 128_256, count))),
  ];
}
