/** EAGLE heads and NextN layers as graphs. */
import type { PartialKind } from "../../../kernels/lib/partial.ts";
import { draftEnds, type ExtendedRows } from "../../../kernels/round/round.ts";
import { draftChoose, type NextLevel } from "../../../kernels/sample/draft_choose.ts";
import { topTokens } from "../../../kernels/tree/top.ts";
import type { TreeBuffers } from "../../../kernels/tree/tree.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { DraftConfig } from "../config/types.ts";
import type { DraftWeights } from "../weights/draft_weights.ts";
import type { DecoderLayer, HeadWeights, LatentWeights } from "../weights/layer_weights.ts";
import type { DecoderContext } from "./context.ts";
import { attended, decoderLayer, layerEnd, projectedHeads, storedHeads } from "./decoder.ts";
import type { Graph, LayerKv, RowsOf, Value } from "./graph.ts";

/** The draft, its keys and values, and the buffers that live from one of its forwards to the next. */
export interface Draft extends DecoderContext {
  readonly draft: DraftConfig;
  readonly weights: DraftWeights;
  readonly kv: LayerKv;
  /** EAGLE-3 with a norm for each aux hidden state before `fc`: for state i the indices 3 r + i of all rows r. */
  readonly auxHidden: readonly Operand[] | undefined;
  /** Queries and residual stream of a draft-extend's rows, [rows, ..], which `draftLast` reads. */
  readonly extended: Pick<ExtendedRows, "q" | "x">;
  /** Rows of a draft-extend whose next token is drafted, one for each sequence. */
  readonly ends: ExtendedRows;
  /** The draft's own last hidden row of each slot, [slots, hidden]. */
  readonly hidden: Operand;
  /** How chains choose draft tokens: with "softmax" each token is stored with the draft's confidence. */
  readonly choice: PartialKind;
  /** The drafts of each slot, [slots, draftWords(maxRows)]. */
  readonly drafts: Operand;
  /** Most rows of a slot in a round. */
  readonly maxRows: number;
  /** Present if the engine drafts trees. */
  readonly tree: TreeScratch | undefined;
}

/** Buffers for drafting trees of `batch` sequences with at most `width` candidates per node. */
export interface TreeScratch extends TreeBuffers {
  /** Most candidates per node in any tree. */
  readonly width: number;
  /** [batch width, head.rows] */
  readonly logits: Operand;
  /** u32 [batch width, partialTopWords(draft vocab, width)] */
  readonly partials: Operand;
  /** The first tokens of each slot's next tree: (token, bits of its probability), u32 [slots, width, 2]. */
  readonly first: Operand;
  /** The best tokens after each row of a level, stored like `first`, u32 [batch width, width, 2]. */
  readonly top: Operand;
  /** `Row`s of a level, [batch width]. */
  readonly rows: Operand;
  /** The hidden row that each row of the level reads, u32 [batch width]: a slot's, or one of `hidden`. */
  readonly index: Operand;
  /** The draft's own hidden rows of a level, [batch width, hidden]. */
  readonly hidden: Operand;
}

/** Hidden rows of the target that a draft-extend reads: `final` (EAGLE), or the aux hidden states. */
export interface Features {
  readonly features: Operand;
}

/** The draft's own hidden rows that a level reads. */
export interface HiddenRows {
  /** [.., hidden] */
  readonly hidden: Operand;
  /** For each row of the level the hidden row that it reads, u32 [rows]; NO_SLOT for none. */
  readonly index: Operand;
}

/** Label of the draft's layer. */
const LABEL = "draft";

/** The residual stream before the draft's layer, and what its attention reads. */
interface Entered {
  readonly x: Value;
  readonly input: Value;
}

/**
 * The part of a draft-extend that all rows need; each row's token is one ahead of its hidden row. It stores keys and
 * values of all rows, and in `draft.extended` what `draftLast` continues from. A layer with latents or an output gate
 * is run to its end here.
 */
export function draftBody(
  graph: Graph,
  draft: Draft,
  of: RowsOf,
  from: Features | HiddenRows,
): void {
  const { weights: { layer }, extended, kv } = draft;
  const attention = cachedAttention(layer);
  if (!endsLater(attention)) {
    const entered = draftInput(graph, draft, of, from, extended.x);
    const placed = { ...layer, kv, label: LABEL };
    decoderLayer(graph, draft, placed, { ...entered, of, at: extended.x });
    return;
  }
  const { input } = draftInput(graph, draft, of, from, extended.x);
  const placed = { kv, label: LABEL };
  const heads = projectedHeads(graph, placed, attention, input);
  storedHeads(graph, draft, placed, { weights: attention, heads, of, at: extended.q });
}

/**
 * Whether `draftLast` finishes the layer that `draftBody` begins. It does not for latents, nor with an output gate,
 * because the gate needs the attention's input of each row.
 */
function endsLater(attention: HeadWeights | LatentWeights): attention is HeadWeights {
  return attention.kind === "heads" && !attention.spec.outputGate;
}

/** The attention of a draft's layer. @throws Error if the layer is recurrent, which no draft's is. */
function cachedAttention({ attention }: DecoderLayer): HeadWeights | LatentWeights {
  if (attention.kind === "heads" || attention.kind === "latent") return attention;
  throw new Error(`a draft's layer is of kind ${attention.kind}`);
}

/** Finishes what `draftBody` began for the last row of each of `batch` sequences: attention and MLP. */
export function draftLast(
  graph: Graph,
  draft: Draft,
  { rows, last }: { readonly rows: Operand; readonly last: Operand },
  batch: number,
): Value {
  const { weights: { layer }, kv, extended, ends, config: { hiddenSize: cols } } = draft;
  const attention = cachedAttention(layer);
  if (!endsLater(attention)) {
    const all = graph.input("draft.extended", draft.widestRows, cols, extended.x);
    return graph.gather(all, last, batch, "draft.ends");
  }
  const qCols = attention.spec.numHeads * attention.spec.headDim;
  const q = graph.input("draft.endQ", batch, qCols, ends.q);
  const x = graph.input("draft.ends", batch, cols, ends.x);
  graph.call({
    reads: [],
    writes: [q, x],
    resetsScales: true,
    record: (_, { attentionScales: reduced }) => [
      draftEnds({ last, all: { rows, ...extended }, ends, reduced }, { batch, qCols, cols }),
    ],
  }, "draft.ends");
  const of = { rows: ends.rows, count: batch, perSlot: 1 };
  const placed = { ...layer, kv, label: LABEL };
  const branch = attended(graph, draft, placed, { weights: attention, q, of });
  return layerEnd(graph, draft, placed, { x, branch });
}

/**
 * Hidden rows of a draft forward in which the next token of every row is wanted. Its bits may differ from those of
 * `draftBody`: at worst that makes other drafts, never other text.
 */
export function draftLevel(
  graph: Graph,
  draft: Draft,
  of: RowsOf,
  from: Features | HiddenRows,
): Value {
  const entered = draftInput(graph, draft, of, from);
  const placed = { ...draft.weights.layer, kv: draft.kv, label: LABEL };
  return decoderLayer(graph, draft, placed, { ...entered, of });
}

/** @param at where x is stored; absent: in scratch memory. */
function draftInput(
  graph: Graph,
  draft: Draft,
  of: RowsOf,
  from: Features | HiddenRows,
  at?: Operand,
): Entered {
  switch (draft.draft.algorithm) {
    case "EAGLE3":
      return eagle3Input(graph, draft, of, from, at);
    case "EAGLE": {
      const x = eagle1Input(graph, draft, of, from, at);
      return { x, input: x };
    }
    case "NEXTN": {
      const x = eagle1Input(graph, draft, of, from, at);
      const weight = draft.weights.layerNorm as Operand;
      const eps = draft.config.rmsNormEps;
      return { x, input: graph.norm(x, { weight, eps }, "draft.layerNorm") };
    }
  }
}

/**
 * EAGLE-3: the attention reads [norm(embedding), norm(h)] with h = fc(aux hidden states), or the draft's own hidden
 * row; x = h, or norm(h) where the checkpoint norms before the residual.
 */
function eagle3Input(
  graph: Graph,
  draft: Draft,
  { rows, count }: RowsOf,
  from: Features | HiddenRows,
  at: Operand | undefined,
): Entered {
  const { weights, config: { rmsNormEps: eps }, draft: { normBeforeResidual } } = draft;
  const norms = weights.norms as NonNullable<DraftWeights["norms"]>;
  const stored = normBeforeResidual ? undefined : at;
  const h = "features" in from
    ? fc(graph, draft, auxFeatures(graph, draft, from, count), stored)
    : hiddenRows(graph, draft, from, count, stored);
  const token = graph.norm(
    graph.embed({ table: weights.embed, rows, count }, "draft.embed"),
    { weight: norms.input, eps },
    "draft.inputNorm",
  );
  const hidden = graph.norm(
    h,
    { weight: norms.hidden, eps, at: normBeforeResidual ? at : undefined },
    "draft.hiddenNorm",
  );
  const input = graph.concat([token, hidden], "draft.inputNorms");
  return { x: normBeforeResidual ? hidden : h, input };
}

/** The aux hidden states side by side: as they are, normed together, or each alone. */
function auxFeatures(
  graph: Graph,
  { weights: { inputNorms, fc: { cols } }, config: { rmsNormEps: eps }, auxHidden = [] }: Draft,
  { features }: Features,
  rows: number,
): Value {
  const all = graph.input("draft.features", rows, cols, features);
  const [weight, ...others] = inputNorms;
  if (!weight) return all;
  if (others.length === 0) return graph.norm(all, { weight, eps }, "draft.featureNorm");
  const count = inputNorms.length;
  const each = graph.input("draft.features", rows * count, cols / count, features);
  const normed = inputNorms.map((weight, i) =>
    graph.norm(
      graph.gather(each, auxHidden[i] as Operand, rows, "draft.feature"),
      { weight, eps },
      "draft.featureNorm",
    )
  );
  return graph.concat(normed as [Value, ...Value[]], "draft.featureNorms");
}

/** EAGLE-1/2, NEXTN: x = fc([embedding, hidden]), each normed first where the checkpoint has norms for it. */
function eagle1Input(
  graph: Graph,
  draft: Draft,
  { rows, count }: RowsOf,
  from: Features | HiddenRows,
  at: Operand | undefined,
): Value {
  const { weights: { embed: table, inputNorms }, config: { hiddenSize, rmsNormEps: eps } } = draft;
  const token = graph.embed({ table, rows, count }, "draft.embed");
  const hidden = "features" in from
    ? graph.input("draft.features", count, hiddenSize, from.features)
    : hiddenRows(graph, draft, from, count);
  const [ofToken, ofHidden] = inputNorms;
  const both: [Value, Value] = ofToken && ofHidden
    ? [
      graph.norm(token, { weight: ofToken, eps }, "draft.inputNorm"),
      graph.norm(hidden, { weight: ofHidden, eps }, "draft.hiddenNorm"),
    ]
    : [token, hidden];
  return fc(graph, draft, graph.concat(both, "draft.hidden"), at);
}

function fc(graph: Graph, { weights: { fc, fcBias: bias } }: Draft, x: Value, at?: Operand): Value {
  return graph.linear(x, fc, { bias, at, label: "draft.fc" });
}

function hiddenRows(
  graph: Graph,
  { config: { hiddenSize } }: Draft,
  { hidden, index }: HiddenRows,
  rows: number,
  at?: Operand,
): Value {
  const all = graph.input("draft.hidden", rows, hiddenSize, hidden);
  return graph.gather(all, index, rows, "draft.hidden", at);
}

/** What a draft level stores: a token per sequence, and the hidden row that the next level reads. */
export interface DraftEnd {
  readonly step: number;
  /** Whether another level follows, in this round or the next. */
  readonly keepHidden: boolean;
  /** Where the rows of the next level are written, if it follows in this round. */
  readonly next?: NextLevel | undefined;
}

/** Records the choice of draft token `step` of each sequence, and keeps the hidden row that the next level reads. */
export function draftHead(
  graph: Graph,
  draft: Draft,
  batchSlots: Operand,
  { x, step, keepHidden, next }: DraftEnd & { readonly x: Value },
): void {
  const { weights, choice: kind, drafts, maxRows, tuning: { rowLanes: lanes } } = draft;
  const { draftVocabSize: vocab } = draft.draft;
  const label = `draft_choose.${step}`;
  const ends = headInput(graph, draft, x, keepHidden ? batchSlots : undefined);
  const logits = graph.linear(ends, weights.head, { logits: true, label: "draft.head" });
  const partials = graph.partials(logits, { choice: kind, vocab }, label);
  const { offsets } = weights;
  graph.call({
    reads: [partials],
    writes: [],
    record: (at, { partialsOf }) => [
      draftChoose({ partials: at(partials), offsets, batchSlots, drafts, next }, {
        kind,
        batch: x.rows,
        count: partialsOf(partials),
        step,
        maxRows,
        label,
        lanes,
      }),
    ],
  }, label);
}

/** Records the first tokens of each sequence's tree. The best one is also draft token 0, so that a chain can begin. */
export function firstTokens(
  graph: Graph,
  draft: Draft,
  tree: TreeScratch,
  batchSlots: Operand,
  x: Value,
): void {
  const { drafts, maxRows, choice } = draft;
  const ends = headInput(graph, draft, x, batchSlots);
  const bySlot = { batchSlots, drafts, maxRows, confident: choice === "softmax" };
  headTop(graph, draft, tree, ends, {
    top: tree.width,
    out: tree.first,
    bySlot,
    label: "draft_top.first",
  });
}

/**
 * The most probable tokens after each row of a level of a tree, and their hidden rows.
 *
 * @param of.keepHidden whether a further forward follows.
 */
export function levelTokens(
  graph: Graph,
  draft: Draft,
  tree: TreeScratch,
  { x, width, level, keepHidden }: {
    readonly x: Value;
    readonly width: number;
    readonly level: number;
    readonly keepHidden: boolean;
  },
): void {
  const { weights: { finalNorm }, draft: { normOutput }, config: { hiddenSize: cols } } = draft;
  const normed = finalNorm ? finalNormOf(graph, draft, x, finalNorm) : x;
  if (keepHidden) {
    const kept = normOutput ? normed : x;
    graph.copy(kept, { out: tree.hidden, outCols: cols, outFirst: 0 }, "draft.keepHidden");
  }
  const label = `draft_top.${level}`;
  headTop(graph, draft, tree, normed, { top: width, out: tree.top, label });
}

/** Records the search for the most probable tokens after the hidden rows x, for which all logits are stored. */
function headTop(
  graph: Graph,
  { weights: { head, offsets }, draft: { draftVocabSize: vocab }, tuning }: Draft,
  { logits: at, partials }: TreeScratch,
  x: Value,
  { top, label, ...to }: Pick<Parameters<typeof topTokens>[0], "out" | "bySlot"> & {
    readonly top: number;
    readonly label: string;
  },
): void {
  const logits = graph.linear(x, head, { logits: true, at, label: "draft.head" });
  const shape = {
    rows: x.rows,
    vocab,
    stride: head.rows,
    top,
    lanes: tuning.rowLanes,
    label,
  };
  graph.call({
    reads: [logits],
    writes: [],
    record: (of) => topTokens({ logits: of(logits), partials, offsets, ...to }, shape),
  }, label);
}

/**
 * The head's input for hidden rows x. @param slots the slots under which hidden rows are kept; absent: none are kept.
 */
function headInput(graph: Graph, draft: Draft, x: Value, slots: Operand | undefined): Value {
  const { weights: { finalNorm }, draft: { normOutput }, hidden } = draft;
  const normed = finalNorm ? finalNormOf(graph, draft, x, finalNorm) : x;
  if (slots) graph.scatter(normOutput ? normed : x, slots, hidden, "draft.keepHidden");
  return normed;
}

function finalNormOf(graph: Graph, { config }: Draft, x: Value, weight: Operand): Value {
  return graph.norm(x, { weight, eps: config.rmsNormEps }, "draft.norm");
}
