/**
 * Operations as kernels run them. The plain lowering makes one for each operation of a graph; rewrites fuse several
 * into one.
 */
import type { ElementFunction } from "../../../kernels/elementwise/elementwise.ts";
import type { TileSize } from "../../../kernels/experts/job_lists.ts";
import type { PartialKind } from "../../../kernels/lib/partial.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { CellRange } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import type { Activation } from "../../../kernels/lib/gate.ts";
import type {
  Add,
  Attention,
  Call,
  Combine,
  Copy,
  DeltaRule,
  Elementwise,
  Embed,
  ExpertGate,
  ExpertJobs,
  Gate,
  GatedNorm,
  Gather,
  LatentAttention,
  LatentPrepare,
  LatentValue,
  Op,
  Partials,
  Route,
  ScaleBy,
  Scatter,
  ShortConvolution,
  SigmoidGate,
  StoreHeads,
  Value,
  VerifyRows,
  Window,
} from "../graph/graph.ts";

/** Matmul inputs whose row scales are stored for matrix units: normed rows, attention's output, gated activations. */
export type ScaledInput = "normed" | "attentionOutput" | "act";

/** The input of a norm. */
export type NormSource =
  /** The rows of x, or the rows of x that `index` names. */
  | { readonly of: "rows"; readonly x: Value; readonly index?: Operand | undefined }
  /** x + y, which is also stored in `stream`; without x the sum of y's parts. */
  | {
    readonly of: "sums";
    readonly x: Value | undefined;
    readonly y: Value;
    readonly stream: Value | undefined;
  }
  /** (x + norm(y)) * scalar, which is also stored in `stream`; absent `scalar`: 1. */
  | {
    readonly of: "normed";
    readonly x: Value;
    readonly y: Value;
    /** Weights of the norm of y. */
    readonly weight: Operand;
    /** Present where y is first normed by itself, and the experts' normed outputs are added to it: see `NormSumOp`. */
    readonly experts?: NormSumOp["experts"] & { readonly sumsWeight: Operand } | undefined;
    readonly scalar: Operand | undefined;
    readonly stream: Value;
  }
  /** x + the experts' weighted outputs, which is also stored in `stream`. */
  | {
    readonly of: "experts";
    readonly x: Value;
    readonly outputs: Value;
    readonly shares: Value;
    readonly bias: Combine["bias"];
    readonly stream: Value;
  }
  /** Token embeddings. */
  | {
    readonly of: "tokens";
    readonly table: Table;
    readonly rows: Operand;
    readonly scale: number;
    /** Present where the norm first writes the `Row`s of a verify forward. */
    readonly verified: VerifyRows | undefined;
  };

/** A second output of a norm: its input or the normed rows, written to a value or a window; or the input by slot. */
export type NormKeep =
  | { readonly what: "input" | "output"; readonly out: Value }
  | { readonly what: "input"; readonly window: Window }
  | { readonly what: "slot"; readonly out: Value; readonly slot: Operand };

export interface NormOp {
  readonly kind: "norm";
  readonly from: NormSource;
  readonly weight: Operand;
  readonly eps: number;
  /** Columns of a normed row. */
  readonly cols: number;
  readonly out: Value;
  /** The column of out at which a row begins. */
  readonly first: number;
  /** "add": added to `to`, in whose buffer out is stored; "pair", "half": stored as f16 for matrix units. */
  readonly put: "store" | "add" | "pair" | "half";
  readonly to: Value | undefined;
  readonly keep: NormKeep | undefined;
  /** Whether the scales of the rows are stored. */
  readonly storesScales: boolean;
}

export interface DeltaRuleOp extends DeltaRule {
  /** The fused convolution of q, k and v: its input is read instead of `mixed`. */
  readonly conv: ShortConvolution | undefined;
}

export interface GatedNormOp extends GatedNorm {
  /** "pair", "half": stored as f16 for matrix units. */
  readonly put: "store" | "pair" | "half";
  /** Whether the scales of the rows are stored. */
  readonly storesScales: boolean;
}

/** The epilogue of a matmul. */
export type MatmulEpilogue =
  | { readonly of: "store" }
  /** The outputs are added to `to`, in whose buffer out is stored. */
  | { readonly of: "add"; readonly to: Value }
  /** `values`, one per column, are added. */
  | { readonly of: "bias"; readonly values: Operand }
  | { readonly of: "gate"; readonly activation: Activation; readonly storesScales: boolean }
  | ElementFunction
  | {
    readonly of: "heads";
    readonly bias: Operand | undefined;
    readonly store: Pick<StoreHeads, "heads" | "to">;
  }
  | { readonly of: "partials"; readonly choice: PartialKind; readonly vocab: number };

/** What a matmul does to x while it brings x to workgroup memory. */
export type MatmulPrologue =
  /** The rows are normed. */
  | {
    readonly of: "norm";
    readonly from: Extract<NormSource, { of: "rows" | "sums" | "experts" }>;
    readonly weight: Operand;
    readonly eps: number;
    readonly window: Window | undefined;
    /** Whether the matmul stores the new residual stream; false where another part of its dispatch does. */
    readonly stores: boolean;
    /** How many times as many groups of lanes workgroups have, see `normsRows`. */
    readonly widen: number;
    /** On matrix units: whether it resets the scales of the layer's other inputs to the largest value. */
    readonly lowers: boolean;
  }
  /** Heads are normed and gated. */
  | { readonly of: "gated_norm"; readonly norm: GatedNormOp }
  /** The partial sums of attention's splits are combined. */
  | { readonly of: "splits"; readonly attention: AttentionOp; readonly widen: number };

export interface MatmulOp {
  readonly kind: "matmul";
  readonly x: Value;
  readonly matrix: Matrix;
  readonly out: Value;
  readonly epilogue: MatmulEpilogue;
  readonly prologue: MatmulPrologue | undefined;
  /** Which stored row scales belong to x; undefined where none are stored. */
  readonly xScales: ScaledInput | undefined;
  /** Whether x is stored as f16, see `takesF16`. */
  readonly xIsF16: boolean;
  /** Whether the outputs are logits over a vocabulary. */
  readonly logits: boolean;
  /** Whether it may run on matrix units. */
  readonly onUnits: boolean;
}

/** Partial sums of attention over the splits of the cells. */
export interface PartialValues {
  readonly sums: Value;
  readonly stats: Value;
  readonly halves: Value | undefined;
}

export interface AttentionOp extends Omit<Attention, "q"> {
  readonly q: Value;
  readonly partial: PartialValues;
  /** Both dispatches ("all"), only the first, which stores partial sums, or only the second, which combines them. */
  readonly stage: "all" | "scores" | "combine";
  /** Whether the scales of out's rows are lowered. */
  readonly storesScales: boolean;
  /** "half": stored as f16 for matrix units. */
  readonly put: "store" | "half";
  /** Present where attention itself norms, rotates and stores q, k and v of its rows. */
  readonly own: { readonly qkv: Value; readonly store: StoreHeads } | undefined;
  /** Gates whose sigmoids multiply the output; their columns begin at `first`. */
  readonly gate: { readonly value: Value; readonly first: number } | undefined;
}

export interface LatentAttentionOp extends LatentAttention {
  readonly partial: PartialValues;
  /** Present where its last dispatch also turns the combined latents into values. */
  readonly value: Omit<LatentValueOp, "kind" | "x"> | undefined;
}

export interface LatentValueOp extends LatentValue {
  readonly storesScales: boolean;
}

export type ClampedGate = Pick<ExpertGate, "bias" | "limit">;

export interface ExpertMatmulOp {
  readonly kind: "expert_matmul";
  readonly x: Value;
  readonly perJob: boolean;
  readonly matrix: Matrix;
  readonly experts: Value;
  readonly jobs: ExpertJobs;
  /** Jobs of an expert that share a tile; 1: each is alone. */
  readonly tile: TileSize;
  readonly out: Value;
  /** The activation of a gated epilogue, or a clamped gate with biases; undefined: outputs are stored as they are. */
  readonly gated: Activation | ClampedGate | undefined;
  readonly xScales: ScaledInput | undefined;
  /** Whether the scales of out's rows are lowered. */
  readonly storesScales: boolean;
  /** Present where this matmul chooses the experts; it then stores their shares too. */
  readonly choice: {
    readonly logits: Value;
    readonly shares: Value;
    readonly factors: Operand | undefined;
  } | undefined;
  /** The lists of jobs in tiles of that size; undefined: it reads none. */
  readonly tiles: Value | undefined;
}

/** Lists the jobs of each expert in tiles of `tile`, for experts' matmuls that read lists. */
export interface ExpertTilesOp {
  readonly kind: "expert_tiles";
  readonly tile: TileSize;
  readonly experts: Value;
  readonly jobs: ExpertJobs;
  readonly out: Value;
}

/** stream += the experts' weighted outputs, which are not stored themselves. */
export interface ExpertSumsOp {
  readonly kind: "expert_sums";
  readonly matrix: Matrix;
  readonly x: Value;
  readonly experts: Value;
  readonly shares: Value;
  /** Biases of the experts' outputs. */
  readonly bias: Operand | undefined;
  readonly jobs: ExpertJobs;
  readonly stream: Value;
  readonly out: Value;
}

export interface CombineOp extends Combine {
  /** The value that the sum is added to (its first part), in whose buffer out is stored. */
  readonly to: Value | undefined;
}

/** The router's logits; the kernel norms the rows itself. */
export interface NormedRouterOp {
  readonly kind: "normed_router";
  readonly from:
    | Extract<NormSource, { of: "rows" }>
    | Extract<NormSource, { of: "sums" }> & { readonly x: Value; readonly stream: Value };
  readonly weight: Operand;
  /** Weights of the experts' own norm, where it differs from the router's. */
  readonly expertsWeight: Operand | undefined;
  readonly eps: number;
  readonly matrix: Matrix;
  /** Added to the logits. */
  readonly bias: Operand | undefined;
  readonly normed: Value;
  readonly logits: Value;
  readonly storesScales: boolean;
}

/** Two independent operations of few rows as one dispatch (horizontal fusion). */
export interface FusedOp {
  readonly kind: "fused";
  readonly first: LoweredOp<MatmulOp | NormedRouterOp | Route | ExpertMatmulOp>;
  readonly second: LoweredOp<MatmulOp>;
}

/** Two norms side by side: of embeddings, and of hidden rows. */
export interface NormPairOp {
  readonly kind: "norm_pair";
  readonly token: { readonly table: Table; readonly rows: Operand; readonly weight: Operand };
  readonly hidden: {
    readonly x: Value;
    readonly index: Operand | undefined;
    readonly weight: Operand;
  };
  readonly eps: number;
  readonly keep: { readonly what: "input" | "output"; readonly out: Value };
  readonly out: Value;
  readonly storesScales: boolean;
  readonly put: "store" | "pair" | "half";
}

/** out = norm(the parts of x) + norm(the experts' weighted outputs) */
export interface NormSumOp {
  readonly kind: "norm_sum";
  readonly x: { readonly y: Value; readonly weight: Operand };
  readonly experts: { readonly outputs: Value; readonly shares: Value; readonly weight: Operand };
  readonly eps: number;
  readonly out: Value;
}

/** out = x as f16 with a scale for each row, for the matmul that follows. Two numbers take one 32-bit word. */
export interface HalfRowsOp {
  readonly kind: "half_rows";
  readonly x: Value;
  /** [rows, cols of x / 2] */
  readonly out: Value;
}

/** The matmul of q, k and v of one row and its attention as one dispatch. */
export interface HandoffHeadsOp {
  readonly kind: "handoff_heads";
  readonly qkv: MatmulOp;
  readonly attention: AttentionOp & { readonly label: string };
}

/** The gated MLP of one row as one dispatch, together with the matmul `first` before it, if there is one. */
export interface HandoffMlpOp {
  readonly kind: "handoff_mlp";
  readonly gateUp: MatmulOp;
  readonly down: MatmulOp;
  readonly first: MatmulOp | undefined;
}

export type GatherOp = Gather & { readonly first: number };

/** Copies x into the columns of out that begin at `first`. */
export interface PlaceOp {
  readonly kind: "place";
  readonly x: Value;
  readonly first: number;
  readonly out: Value;
}

type Kernels =
  | NormOp
  | MatmulOp
  | AttentionOp
  | LatentPrepare
  | LatentAttentionOp
  | LatentValueOp
  | ExpertMatmulOp
  | ExpertTilesOp
  | ExpertSumsOp
  | ExpertGate
  | CombineOp
  | NormedRouterOp
  | FusedOp
  | NormPairOp
  | NormSumOp
  | HandoffHeadsOp
  | HalfRowsOp
  | HandoffMlpOp
  | Embed
  | GatherOp
  | PlaceOp
  | Add
  | Gate
  | Elementwise
  | ScaleBy
  | StoreHeads
  | ShortConvolution
  | DeltaRuleOp
  | GatedNormOp
  | SigmoidGate
  | Route
  | Scatter
  | Copy
  | Partials
  | VerifyRows
  | Call;

/**
 * A lowered operation with its name in profiles, its part, and the range of cells for which it runs, if not for all.
 */
export type LoweredOp<Kind extends Kernels = Kernels> =
  & Kind
  & Pick<Op, "label" | "part">
  & { readonly forCells?: CellRange | undefined };

/** The lowered operation of a kind. */
export type OpOf<Kind extends LoweredOp["kind"]> = LoweredOp<Extract<Kernels, { kind: Kind }>>;

function normReads(from: NormSource): Value[] {
  switch (from.of) {
    case "rows":
      return [from.x];
    case "sums":
      return [...from.x ? [from.x] : [], from.y];
    case "normed": {
      const { x, y, experts } = from;
      return [x, y, ...experts ? [experts.outputs, experts.shares] : []];
    }
    case "experts":
      return [from.x, from.outputs, from.shares, ...from.bias ? [from.bias.experts] : []];
    case "tokens":
      return [];
  }
}

function streamOf(from: NormSource): Value[] {
  return "stream" in from && from.stream ? [from.stream] : [];
}

function matmulReads({ x, prologue, epilogue }: MatmulOp): Value[] {
  const to = epilogue.of === "add" ? [epilogue.to] : [];
  if (prologue?.of === "norm") return [...normReads(prologue.from), ...to];
  if (prologue?.of === "gated_norm") return [x, prologue.norm.gate, ...to];
  // Attention's output is bound too, although only its partial sums are read.
  if (prologue?.of === "splits") {
    const { partial, gate } = prologue.attention;
    return [x, ...partialsOf(partial), ...gate ? [gate.value] : [], ...to];
  }
  return [x, ...to];
}

function matmulWrites({ out, prologue }: MatmulOp): Value[] {
  return prologue?.of === "norm" && prologue.stores ? [...streamOf(prologue.from), out] : [out];
}

function attentionReads({ stage, partial, own, q, gate }: AttentionOp): Value[] {
  return [
    ...stage === "combine" ? partialsOf(partial) : [own ? own.qkv : q],
    ...gate && stage !== "scores" ? [gate.value] : [],
  ];
}

function partialsOf({ sums, stats, halves }: PartialValues): Value[] {
  return [sums, stats, ...halves ? [halves] : []];
}

/** The values that an operation reads. */
export function readsOf(op: LoweredOp): Value[] {
  switch (op.kind) {
    case "norm":
      return [...normReads(op.from), ...op.to ? [op.to] : []];
    case "matmul":
      return matmulReads(op);
    case "attention":
      return attentionReads(op);
    case "latent_attention":
      return [op.q];
    case "latent_value":
    case "latent_prepare":
    case "gate":
    case "elementwise":
    case "scale_by":
    case "half_rows":
    case "gather":
    case "place":
    case "scatter":
    case "copy":
    case "short_conv":
      return [op.x];
    case "sigmoid_gate":
    case "gated_norm":
      return [op.x, op.gate];
    case "delta_rule":
      return [op.conv ? op.conv.x : op.mixed, op.rates];
    case "expert_matmul":
      return [
        op.x,
        op.choice ? op.choice.logits : op.experts,
        ...op.tiles ? [op.tiles] : [],
      ];
    case "expert_tiles":
      return [op.experts];
    case "expert_sums":
      return [op.x, op.experts, op.shares, op.stream];
    case "combine":
      return [
        op.x,
        op.shares,
        ...op.bias ? [op.bias.experts] : [],
        ...op.to ? [op.to] : [],
      ];
    case "expert_gate":
      return [op.x, op.experts];
    case "normed_router":
      return normReads(op.from);
    case "fused":
      return [...readsOf(op.first), ...readsOf(op.second)];
    case "norm_pair":
      return [op.hidden.x];
    case "norm_sum":
      return [op.x.y, op.experts.outputs, op.experts.shares];
    case "handoff_heads":
      return matmulReads(op.qkv);
    case "handoff_mlp":
      return [...op.first ? matmulReads(op.first) : [], ...matmulReads(op.gateUp)];
    case "add":
      return [op.x, op.y];
    case "store_heads":
      return [op.qkv];
    case "route":
    case "partials":
      return [op.logits];
    case "call":
      return [...op.reads];
    case "embed":
    case "verify_rows":
      return [];
  }
}

/** The values that an operation writes. */
export function writesOf(op: LoweredOp): Value[] {
  switch (op.kind) {
    case "norm":
      return [
        ...streamOf(op.from),
        op.out,
        ...op.keep && "out" in op.keep ? [op.keep.out] : [],
      ];
    case "matmul":
      return matmulWrites(op);
    case "attention":
      if (op.stage === "scores") return [...partialsOf(op.partial), op.out];
      return op.stage === "combine" ? [op.out] : [...partialsOf(op.partial), op.out];
    case "latent_attention":
      return [...partialsOf(op.partial), op.out, ...op.value ? [op.value.out] : []];
    case "expert_matmul":
      return op.choice ? [op.experts, op.choice.shares, op.out] : [op.out];
    case "normed_router":
      return [...streamOf(op.from), op.normed, op.logits];
    case "fused":
      return [...writesOf(op.first), ...writesOf(op.second)];
    case "norm_pair":
      return [op.out, op.keep.out];
    case "handoff_heads":
      return [
        ...matmulWrites(op.qkv).slice(0, -1),
        ...partialsOf(op.attention.partial),
        op.attention.out,
      ];
    case "handoff_mlp":
      // The activations are passed in handoff words, but their operand is bound too, so they count as written.
      return [...matmulWrites(op.gateUp), op.down.out];
    case "route":
      return [op.out, op.shares];
    case "call":
      return [...op.writes];
    case "copy":
    case "verify_rows":
      return [];
    default:
      return [op.out];
  }
}

/** For operations that write in place: the value that they read and whose buffer `written` takes. */
export function placeOf(op: LoweredOp, written: Value): Value | undefined {
  switch (op.kind) {
    case "norm":
      if (written === op.out) return op.to;
      return "stream" in op.from && written === op.from.stream ? op.from.x : undefined;
    case "matmul":
      return op.epilogue.of === "add" && written === op.out ? op.epilogue.to : undefined;
    case "combine":
      return op.to;
    case "expert_sums":
      return op.stream;
    case "add":
      return op.x;
    default:
      return undefined;
  }
}

/** The operation, and its nested parts, with values replaced; the same object if it has none of them. */
export function substituted<Part extends object>(
  part: Part,
  by: ReadonlyMap<Value, Value>,
): Part {
  const entries = Object.entries(part) as [string, unknown][];
  const replaced = entries.map(([key, of]) => [key, substitute(of, by)] as const);
  if (replaced.every(([, of], i) => of === entries[i]?.[1])) return part;
  return Object.fromEntries(replaced) as Part;
}

function substitute(of: unknown, by: ReadonlyMap<Value, Value>): unknown {
  if (typeof of !== "object" || of === null) return of;
  if (Array.isArray(of)) {
    const all = of.map((each: unknown) => substitute(each, by));
    return all.every((each, i) => each === of[i]) ? of : all;
  }
  if (isValue(of)) return by.get(of as Value) ?? of;
  // Only plain objects are searched, not GPU buffers.
  return Object.getPrototypeOf(of) === Object.prototype ? substituted(of, by) : of;
}

function isValue(of: object): boolean {
  return "parts" in of && "rows" in of && "cols" in of;
}
