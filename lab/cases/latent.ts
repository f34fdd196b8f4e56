import {
  latentAttention,
  latentPartialWords,
  tilesLatents,
} from "../../kernels/mla/latent_attention.ts";
import { attention, partialWords } from "../../kernels/attention/attention.ts";
import type { LatentHeads } from "../../kernels/mla/latent_prepare.ts";
import { prepareRows, valueRows } from "../../kernels/mla/kv_b.ts";
import type { LatentTile } from "../../kernels/mla/latent_kernels.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { blockTable, packRows } from "../../tests/kernels/rows.ts";
import { copiesOf, type MicroCase } from "../case.ts";

/** The sizes of DeepSeek-V2-Lite, or a part of its widths on a software adapter. */
function sizesOf(software: boolean): LatentHeads {
  const part = software ? 8 : 1;
  return {
    heads: 16 / part,
    nope: 128 / part,
    rope: 64 / part,
    value: 128 / part,
    rank: 512 / part,
    interleaved: true,
  };
}

interface Seen {
  /** The number of cells that every row attends to. */
  readonly context: number;
  readonly count: number;
  /** Default f32. */
  readonly kvDtype?: KvDtype;
  /** By default chosen by the number of queries. */
  readonly tile?: LatentTile;
}

/** `count` rows of one sequence, which attend to `context` cells. Many rows are consecutive rows of a prompt. */
export function latentAttentionCase(
  software: boolean,
  { context, count, kvDtype = "f32", tile }: Seen,
): MicroCase {
  const { heads, rank, rope } = sizesOf(software);
  const width = rank + rope;
  const tablePages = context / PAGE;
  const words = context * width * KV_BYTES[kvDtype] / 4;
  const dtype = kvDtype === "f32" ? "" : `/${kvDtype}`;
  return {
    name: `latent/attention/${context}/${count}${dtype}`,
    context,
    make(from) {
      const [q, out] = [from.random(count * heads * width), from.random(count * heads * width)];
      const rows = from.words(
        new Uint32Array(packRows(Array.from({ length: count }, (_, i) => {
          const position = context - count + i;
          return { position, cell: position, base: position + 1 };
        }))),
      );
      const pages = from.words(Uint32Array.from(blockTable(1, tablePages)));
      const sizes = { heads, kvHeads: 1, headDim: width, rank, tablePages, kvDtype };
      const rules = tuning(from.gpu.info.software, from.gpu.limits);
      const tiled = tilesLatents(sizes, rules);
      const { sums, stats } = tiled
        ? latentPartialWords(sizes, count, {})
        : partialWords(sizes, count, rules);
      const partial = { sums: from.random(sums), stats: from.random(stats) };
      const launch = {
        ...sizes,
        count,
        perSlot: count,
        paths: false,
        scale: width ** -0.5,
        tuning: rules,
        label: "latent",
      };
      return copiesOf(4 * words, from).map(() => {
        const latents = from.random(words);
        const buffers = { q, rows, pages, partial, out };
        const plan = tiled
          ? latentAttention({ ...buffers, latents }, { ...launch, tile })
          : attention({ ...buffers, keys: latents, values: latents }, launch);
        return plan.filter(({ forCells }) =>
          forCells === undefined || context >= forCells.from && context <= forCells.upTo
        );
      });
    },
  };
}

/** A head's matrix applied to the queries (which also stores the latents), or to the output of attention. */
function kvBCase(software: boolean, kind: "prepare" | "value", count: number): MicroCase {
  const sizes = sizesOf(software);
  const { heads, nope, rope, value, rank } = sizes;
  return {
    name: `latent/${kind}/${count}`,
    make(from) {
      const rules = tuning(from.gpu.info.software, from.gpu.limits);
      const launch = { ...sizes, count, tuning: rules, label: kind };
      const rows = from.words(
        new Uint32Array(
          packRows(
            Array.from({ length: count }, (_, i) => ({ position: i, cell: i, base: i + 1 })),
          ),
        ),
      );
      const turns = from.random(Math.max(count, 16) * rope);
      const made = from.random(count * heads * (rank + rope));
      const cols = heads * (nope + rope) + rank + rope;
      const short = from.random(count * Math.max(cols, heads * value));
      const input = { x: short, cols, latent: cols - rank - rope, queries: true };
      const pages = from.words(Uint32Array.from(blockTable(1, 16)));
      const [normWeight, latents] = [from.random(rank), from.random(256 * (rank + rope))];
      const kept = { eps: 1e-6, tablePages: 16, kvDtype: "f32" } as const;
      return copiesOf(2 * heads * (nope + value) * rank, from).map(() => {
        const matrix = from.matrix(heads * (nope + value), rank, "bf16");
        const kvB = { ...matrix, format: "bf16" as const };
        return kind === "prepare"
          ? prepareRows(
            { kvB, input, out: made, normWeight, latents, rope: turns, rows, pages },
            { ...launch, ...kept },
          )
          : [valueRows({ kvB, attentionOutput: made, out: short }, launch)];
      });
    },
  };
}

export function latentCases(software: boolean): MicroCase[] {
  const counts = [1, 4, 8, 16, 256];
  const some = software ? counts.slice(0, 2) : counts;
  return [
    ...some.map((count) => latentAttentionCase(software, { context: 512, count })),
    ...some.map((count) => latentAttentionCase(software, { context: 8192, count })),
    ...some.map((count) =>
      latentAttentionCase(software, { context: 8192, count, kvDtype: "bf16" })
    ),
    ...(["prepare", "value"] as const).flatMap((kind) =>
      counts.map((count) => kvBCase(software, kind, count))
    ),
  ];
}
