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

/** The draft, its keys and values, and what is kept between its forwards. */
export interface Draft extends DecoderContext {
  readonly draft: DraftConfig;
  readonly weights: DraftWeights;
  readonly kv: LayerKv;
  /** Rows of the aux hidden states that are normed each before `fc` (EAGLE-3): 3 r + i of state i for every row r. */
  readonly auxHidden: readonly Operand[] | undefined;
  /** What a draft-extend leaves of its rows: queries, and the residual stream, [rows, ..]. */
  readonly extended: Pick<ExtendedRows, "q" | "x">;
  /** Rows of a draft-extend whose next token is drafted, one for each sequence. */
  readonly ends: ExtendedRows;
  /** The draft's own last hidden row of each slot, [slots, hidden]. */
  readonly hidden: Operand;
  /** What drafts of chains are chosen by: with "softmax" they come with the draft's confidence. */
  readonly choice: PartialKind;
  /** What is drafted for each slot, [slots, draftWords(mostRows)]. */
  readonly drafts: Operand;
  /** Rows that a slot may have in any round. */
  readonly mostRows: number;
  /** Where the engine drafts trees. */
  readonly tree: TreeScratch | undefined;
}

/** What drafting trees writes, for `batch` sequences of at most `width` candidates a node. */
export interface TreeScratch extends TreeBuffers {
  /** Candidates of a node of the widest tree. */
  readonly width: number;
  /** [batch width, head.rows] */
  readonly logits: Operand;
  /** u32 [batch width, partialTopWords(draft vocab, width)] */
  readonly partials: Operand;
  /** The first tokens of each slot's next tree: (token, bits of its probability), u32 [slots, width, 2]. */
  readonly first: Operand;
  /** Likewise after each row of a level, u32 [batch width, width, 2]. */
  readonly top: Operand;
  /** `Row`s of a level, [batch width]. */
  readonly rows: Operand;
  /** The hidden row that each of them feeds, u32 [batch width]: a slot's, or one of `hidden`. */
  readonly index: Operand;
  /** The draft's own hidden rows of a level, [batch width, hidden]. */
  readonly hidden: Operand;
}

/** Hidden rows of the target that a draft-extend reads: `final` (EAGLE), or the aux hidden states. */
export interface Features {
  readonly features: Operand;
}

/** The draft's own hidden rows that a level feeds. */
export interface HiddenRows {
  /** [.., hidden] */
  readonly hidden: Operand;
  /** The one of each row of the level, u32 [rows]; NO_SLOT for none. */
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
 * One draft forward over rows whose token is one ahead of their hidden row, as far as all of them are needed: their
 * keys and values are stored, and in `draft.extended` what `draftLast` continues with. With latents or a gate it runs
 * to the end.
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
 * Whether `draftLast` finishes the layer of `draftBody`: not of latents, nor with a gate, which reads the input of
 * every row.
 */
function endsLater(attention: HeadWeights | LatentWeights): attention is HeadWeights {
  return attention.kind === "heads" && !attention.outputGate;
}

/** The attention of a draft's layer. @throws Error where it has a state in its place, which no head has. */
function cachedAttention({ attention }: DecoderLayer): HeadWeights | LatentWeights {
  if (attention.kind === "heads" || attention.kind === "latent") return attention;
  throw new Error(`a draft's layer is of kind ${attention.kind}`);
}

/** Hidden rows of the last row of each of `batch` sequences, where `draftBody` left them: attention and MLP. */
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
    lowers: true,
    record: (_, { lowered }) => [
      draftEnds({ last, all: { rows, ...extended }, ends, lowered }, { batch, qCols, cols }),
    ],
  }, "draft.ends");
  const of = { rows: ends.rows, count: batch, perSlot: 1 };
  const placed = { ...layer, kv, label: LABEL };
  const branch = attended(graph, draft, placed, { weights: attention, q, of });
  return layerEnd(graph, draft, placed, { x, branch });
}

/**
 * One draft forward over rows for all of which the next token is wanted: their hidden rows. Other bits than `draftBody`
 * gives are other drafts, at worst.
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

/** What a draft level stores: a token of each sequence, and the hidden row that the next level reads. */
export interface DraftEnd {
  readonly step: number;
  /** Whether a further level follows, at once or in the next round. */
  readonly keepHidden: boolean;
  /** Where that level's rows go, if it follows at once. */
  readonly next?: NextLevel | undefined;
}

/** Draft token `step` of each sequence, and the hidden row that the next level reads. */
export function draftHead(
  graph: Graph,
  draft: Draft,
  batchSlots: Operand,
  { x, step, keepHidden, next }: DraftEnd & { readonly x: Value },
): void {
  const { weights, choice: kind, drafts, mostRows, tuning: { rowLanes: lanes } } = draft;
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
        mostRows,
        label,
        lanes,
      }),
    ],
  }, label);
}

/** The first tokens of each sequence's tree, and the first of them as draft token 0, where a chain begins. */
export function firstTokens(
  graph: Graph,
  draft: Draft,
  tree: TreeScratch,
  batchSlots: Operand,
  x: Value,
): void {
  const { drafts, mostRows, choice } = draft;
  const ends = headInput(graph, draft, x, batchSlots);
  const bySlot = { batchSlots, drafts, mostRows, confident: choice === "softmax" };
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

/** The most probable tokens after the hidden rows x: their logits are stored and looked through. */
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
 * What the head reads of hidden rows. @param slots where the draft's own hidden rows are kept; absent: they are not.
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
