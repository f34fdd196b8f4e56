import { attention, partialWords } from "../../kernels/attention/attention.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { blockTable, packRows } from "../../tests/kernels/rows.ts";
import { copiesOf, llama, type MicroCase } from "../case.ts";

interface Shape {
  readonly name: string;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

const FLEDGLING: Shape = { name: "fledgling", heads: 8, kvHeads: 4, headDim: 32 };

interface Seen {
  /** The number of KV cells that every row attends to. */
  readonly context: number;
  /** Rows of each slot. */
  readonly count: number;
  /** Default 1. */
  readonly slots?: number;
  /** Default f32. */
  readonly kvDtype?: KvDtype;
}

/** `count` rows of each sequence, which attend to `context` cells of that sequence. */
function attentionCase(
  { name, heads, kvHeads, headDim }: Shape,
  { context, count, slots = 1, kvDtype = "f32" }: Seen,
): MicroCase {
  const tablePages = context / PAGE;
  const words = slots * context * kvHeads * headDim * KV_BYTES[kvDtype] / 4;
  const all = slots * count;
  const width = all * heads * headDim;
  const dtype = kvDtype === "f32" ? "" : `/${kvDtype}`;
  return {
    name: `attention/${name}/${context}/${slots > 1 ? `${slots}x` : ""}${count}${dtype}`,
    context,
    make(from) {
      const [q, out] = [from.random(width), from.random(width)];
      const rows = from.words(
        new Uint32Array(packRows(Array.from({ length: all }, (_, r) => {
          return { slot: Math.floor(r / count), position: context - 1, base: context };
        }))),
      );
      const pages = from.words(Uint32Array.from(blockTable(slots, tablePages)));
      const sizes = { heads, kvHeads, headDim, tablePages, kvDtype };
      const { sums, stats } = partialWords(sizes, all, from.gpu.info);
      const partial = { sums: from.random(sums), stats: from.random(stats) };
      const scale = 1 / Math.sqrt(headDim);
      const launch = {
        count: all,
        perSlot: count,
        paths: false,
        scale,
        tuning: tuning(from.gpu.info.software),
        label: name,
      };
      return copiesOf(2 * 4 * words, from).map(() => {
        const [keys, values] = [from.random(words), from.random(words)];
        const buffers = { q, keys, values, rows, pages, partial, out };
        return attention(buffers, { ...sizes, ...launch });
      });
    },
  };
}

export function attentionCases(software: boolean): MicroCase[] {
  const counts = [1, 4, 8, 16];
  const large = llama(software);
  const long = software ? [1, 4] : counts; // 16 rows take a second on a software adapter
  return [
    ...counts.map((count) => attentionCase(large, { context: 512, count })),
    ...long.map((count) => attentionCase(large, { context: 8192, count })),
    ...long.map((count) => attentionCase(large, { context: 8192, count, kvDtype: "bf16" })),
    ...software ? [] : [attentionCase(large, { context: 512, count: 256 })],
    ...software ? [] : [[16, 1], [4, 4], [8, 4], [16, 4]].map(([slots = 1, count = 1]) => {
      return attentionCase(large, { context: 512, count, slots });
    }),
    ...counts.map((count) => attentionCase(FLEDGLING, { context: 512, count })),
  ];
}
