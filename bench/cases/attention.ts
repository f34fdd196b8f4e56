import { attention } from "../../shaders/attention.ts";
import { tuning } from "../../src/gpu/matrix.ts";
import { PAGE } from "../../src/model/rows_layout.ts";
import { blockTable, packRows } from "../../tests/shaders/rows.ts";
import { copiesOf, llama, type MicroCase } from "../case.ts";

interface Shape {
  readonly name: string;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

const FLEDGLING: Shape = { name: "fledgling", heads: 8, kvHeads: 4, headDim: 32 };

/** `count` rows of one sequence, which see `context` cells before them. */
function attentionCase({ name, ...heads }: Shape, context: number, count: number): MicroCase {
  const tablePages = context / PAGE;
  const kvCells = context * heads.kvHeads * heads.headDim;
  const width = count * heads.heads * heads.headDim;
  return {
    name: `attention/${name}/${context}/${count}`,
    context,
    make(from) {
      const [q, out] = [from.random(width), from.random(width)];
      const rows = from.words(new Uint32Array(packRows(Array(count).fill({ base: context }))));
      const pages = from.words(Uint32Array.from(blockTable(1, tablePages)));
      const shape = { ...heads, tablePages, count, tuning: tuning(from.gpu.info.software) };
      return copiesOf(2 * 4 * kvCells, from).map(() => {
        const [keys, values] = [from.random(kvCells), from.random(kvCells)];
        return [attention({ q, keys, values, rows, pages, out }, { ...shape, label: name })];
      });
    },
  };
}

export function attentionCases(software: boolean): MicroCase[] {
  const counts = [1, 4, 8, 16];
  const long = software ? [1, 4] : counts; // 16 rows take a second there
  return [
    ...counts.map((count) => attentionCase(llama(software), 512, count)),
    ...long.map((count) => attentionCase(llama(software), 8192, count)),
    ...counts.map((count) => attentionCase(FLEDGLING, 512, count)),
  ];
}
