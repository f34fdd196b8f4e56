/** What the plans of a draft work on. */
import type { PartialKind } from "../../../kernels/lib/partial.ts";
import type { ExtendedRows } from "../../../kernels/round/round.ts";
import type { TreeBuffers } from "../../../kernels/tree/tree.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import type { DraftConfig } from "../config/types.ts";
import type { DecoderLayer } from "./decoder.ts";
import type { DecoderContext, LayerKv } from "./decoder_context.ts";

/** Weights of an EAGLE head or a NextN layer; what it has not is undefined, or the target's. */
export interface DraftWeights {
  /** [vocab, hidden]; the target's where the checkpoint has none. */
  readonly embed: Table;
  /** EAGLE: [hidden, 2 hidden] over (embedding, hidden). EAGLE-3: [hidden, 3 target hidden]. */
  readonly fc: Matrix;
  readonly fcBias: Operand | undefined;
  readonly layer: DecoderLayer;
  /** EAGLE-3: norms of the embedding and of the hidden row. */
  readonly norms: { readonly input: Operand; readonly hidden: Operand } | undefined;
  /** NEXTN: of what enters the layer. */
  readonly layerNorm: Operand | undefined;
  /** EAGLE-3, NEXTN: before the head. */
  readonly finalNorm: Operand | undefined;
  /** Norms before `fc`, in the order of its columns; see `DraftConfig.inputNorms`. */
  readonly inputNorms: readonly Operand[];
  /** [draft vocab, hidden] */
  readonly head: Matrix;
  /** d2t: target id minus draft id, i32 [draft vocab]. */
  readonly offsets: Operand;
}

/** The draft and what its plans write to. */
export interface Draft extends DecoderContext {
  readonly draft: DraftConfig;
  readonly weights: DraftWeights;
  readonly kv: LayerKv;
  /** Inputs side by side, [rows, 2 hidden]: (embedding, hidden). */
  readonly fcInput: Operand;
  /** Where features are normed before `fc` (EAGLE-3). */
  readonly normedFeatures: NormedFeatures | undefined;
  /** Of a draft-extend, the rows whose next token is wanted, one a sequence. */
  readonly ends: ExtendedRows;
  /** The draft's own last hidden row of each slot, [slots, hidden]. */
  readonly hidden: Operand;
  /** [batch, head.rows]; absent: the head stores partial results only, see `canStorePartials`. */
  readonly logits: Operand | undefined;
  /** What is kept of parts of the columns, u32 [batch, parts of a place, PARTIAL_WORDS[choice]]. */
  readonly partials: Operand;
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
  /** Of the widest tree. */
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

/** Room for the features of a draft-extend, normed, [rows, 3 target hidden]. */
export interface NormedFeatures {
  readonly out: Operand;
  /** Of each aux hidden state i: 3 r + i for every row r, where a row is one of them. */
  readonly auxHidden: readonly Operand[];
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

/** Slot of each sequence, u32 [batch]. */
export interface BatchSlots {
  readonly batchSlots: Operand;
}
