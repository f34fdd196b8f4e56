/** The plain lowering: each operation of a graph with its unfused defaults. `emit.ts` picks the kernels. */
import { expertTile, readsTiles, tileWords } from "../../../kernels/experts/experts.ts";
import type { Jobs } from "../../../kernels/experts/job_lists.ts";
import { partialWords } from "../../../kernels/attention/attention.ts";
import { attentionWords } from "../../../kernels/attention/attention_on_device.ts";
import type { Heads, PartialWords } from "../../../kernels/lib/heads.ts";
import { PARTIAL_WORDS } from "../../../kernels/lib/partial.ts";
import { latentPartialWords, tilesLatents } from "../../../kernels/mla/latent_attention.ts";
import { slicePartialCount } from "../../../kernels/sample/slice_partials.ts";
import type { Tuning } from "../../gpu/tuning.ts";
import type { DecoderContext } from "../graph/context.ts";
import { jobCounts, type Linear, type Op, type Value, value, widen } from "../graph/graph.ts";
import type { LoweredOp, PartialValues } from "./ops.ts";

/** The operations of a graph, each as its plain kernel runs it. */
export function select(ops: readonly Op[], context: DecoderContext): LoweredOp[] {
  const { tuning } = context;
  // The choice of experts and the decays depend on these values: they are not computed on matrix units.
  const exact = new Set(
    ops.flatMap((op) => {
      if (op.kind === "route") return [op.logits];
      return op.kind === "delta_rule" ? [op.rates] : [];
    }),
  );
  const tiles = new Map<Value, Map<number, Value>>();
  const partialsOf = partialValues(ops, context);
  const words = new Map<string, number>();
  return ops.flatMap((op): LoweredOp[] => {
    const { label, part } = op;
    switch (op.kind) {
      case "norm":
        return [{
          kind: "norm",
          from: { of: "rows", x: op.x },
          weight: op.weight,
          eps: op.eps,
          cols: op.x.cols,
          out: op.out,
          first: 0,
          put: "store",
          to: undefined,
          keep: undefined,
          storesScales: false,
          label,
          part,
        }];
      case "linear":
        return linear(op, exact.has(op.out));
      case "concat": {
        let first = 0;
        return op.xs.map((x): LoweredOp => {
          const at = first;
          first += x.cols;
          return { kind: "place", x, first: at, out: op.out, label: x.label, part };
        });
      }
      case "attention": {
        const partial = partialsOf(op.heads);
        const plain = { stage: "all", storesScales: false, put: "store" } as const;
        return [{ ...op, partial, ...plain, own: undefined, gate: undefined }];
      }
      case "latent_attention": {
        const partial = partialsOf(op.heads);
        return [{ ...op, partial, value: undefined }];
      }
      case "latent_value":
        return [{ ...op, storesScales: false }];
      case "delta_rule":
        return [{ ...op, conv: undefined }];
      case "gated_norm":
        return [{ ...op, put: "store", storesScales: false }];
      case "expert_linear": {
        const { x, perJob, matrix, experts, jobs, out } = op;
        const counts = jobCounts(jobs, experts.rows);
        const tile = expertTile(counts, matrix, tuning);
        // Matrices of one format share lists; gateUp and down may have different ones.
        const lists = tiles.getOrInsertComputed(experts, () => new Map());
        const listing: LoweredOp[] = [];
        const listed = readsTiles(matrix, { ...counts, tile }, tuning)
          ? lists.getOrInsertComputed(tile, () => {
            const out = value(`${label}.tiles`, 1, maxTileWords(words, counts, context));
            const named = label.replace(/experts\.\w+$/, "tiles");
            listing.push({ kind: "expert_tiles", tile, experts, jobs, out, label: named, part });
            return out;
          })
          : undefined;
        return [...listing, {
          kind: "expert_matmul",
          x,
          perJob,
          matrix,
          experts,
          jobs,
          tile,
          out,
          gated: undefined,
          xScales: undefined,
          xIsF16: false,
          storesScales: false,
          choice: undefined,
          tiles: listed,
          label,
          part,
        }];
      }
      case "combine":
        return [{ ...op, to: undefined }];
      case "gather":
        return [{ ...op, first: 0 }];
      case "partials": {
        widen(op.out, PARTIAL_WORDS[op.choice] * slicePartialCount(op.vocab));
        return [op];
      }
      default:
        return [op];
    }
  });
}

function linear(
  { x, matrix, bias, logits, out, label, part }: Linear & Op,
  exact: boolean,
): LoweredOp[] {
  return [{
    kind: "matmul",
    x,
    matrix,
    out,
    epilogue: bias ? { of: "bias", values: bias } : { of: "store" },
    prologue: undefined,
    xScales: undefined,
    xIsF16: false,
    logits,
    // Few rows of a router do not use matrix units, so more rows must not either: the bits have to be the same.
    onUnits: !exact,
    label,
    part,
  }];
}

/** f32 words of the partial sums that a layer's attention over at most `rows` rows stores. */
function attentionPartialWords(
  heads: Heads,
  rows: number,
  adapter: Pick<Tuning, "software" | "bindingBytes" | "workgroupBytes" | "attentionUnits">,
): PartialWords {
  const { rank } = heads;
  if (rank === undefined) return attentionWords(heads, rows, adapter);
  return tilesLatents(heads, adapter)
    ? latentPartialWords({ ...heads, rank }, rows, adapter)
    : partialWords(heads, rows, adapter);
}

/**
 * Values for the partial sums of attention over the rows of the widest forward. All layers use the same values,
 * whatever heads they have.
 */
function partialValues(
  ops: readonly Op[],
  { tuning, widestRows }: DecoderContext,
): (heads: Heads) => PartialValues {
  const wordsOf = (heads: Heads) => attentionPartialWords(heads, widestRows, tuning);
  const all = ops.flatMap((op) =>
    op.kind === "attention" || op.kind === "latent_attention" ? [wordsOf(op.heads)] : []
  );
  const room = (name: keyof PartialWords) =>
    value(`partial.${name}`, 1, Math.max(0, ...all.map((words) => words[name] ?? 0)));
  const [sums, stats, halves] = [room("sums"), room("stats"), room("halves")];
  return (heads) => ({ sums, stats, halves: wordsOf(heads).halves ? halves : undefined });
}

/** Words of the lists of jobs; computed once for all layers with the same numbers of experts. */
function maxTileWords(
  known: Map<string, number>,
  counts: Jobs,
  { tuning }: DecoderContext,
): number {
  return known.getOrInsertComputed(
    JSON.stringify(counts),
    () => tileWords(counts, tuning, tuning.tensor?.unit),
  );
}
