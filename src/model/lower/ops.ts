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
  GateBy,
  GateColumns,
  GatedNorm,
  Gather,
  LatentAttention,
  LatentPrepare,
  LatentValue,
  Op,
  OutputGate,
  Partials,
  Route,
  ScaleBy,
  Scatter,
  ShortConvolution,
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
    /** Weights and eps of the norm of y. */
    readonly weight: Operand;
    readonly eps: number;
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
  /** gelu(y) * by, see `GateBy`. */
  | { readonly of: "gate_by"; readonly by: Value; readonly first: number }
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
    readonly from: Extract<NormSource, { of: "rows" | "sums" | "normed" | "experts" }>;
    readonly weight: Operand;
    readonly eps: number;
    readonly window: Window | undefined;
    /** Whether the matmul stores the new residual stream; false where another part of its dispatch does. */
    readonly stores: boolean;
    /** How many times as many groups of lanes workgroups have, see `normsRows`. */
    readonly widen: number;
    /** On matrix units: whether it resets the scales of the layer's other inputs to the largest value. */
    readonly resets: boolean;
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
  /** Whether the scales of out's rows are reduced. */
  readonly storesScales: boolean;
  /** "half": stored as f16 for matrix units. */
  readonly put: "store" | "half";
  /** Present where attention itself norms, rotates and stores q, k and v of its rows. */
  readonly own: { readonly qkv: Value; readonly store: StoreHeads } | undefined;
  /** Gates of the output. */
  readonly gate: GateColumns | undefined;
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
  /** Whether x is stored as f16, see `expertsTakeF16`. */
  readonly xIsF16: boolean;
  /** Whether the scales of out's rows are reduced. */
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
  | OutputGate
  | GateBy
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
  const to = epilogue.of === "add" ? [epilogue.to] : epilogue.of === "gate_by" ? [epilogue.by] : [];
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

/** How operations of a kind use values. */
interface Operands<Of> {
  reads(op: Of): readonly Value[];
  writes(op: Of): readonly Value[];
  /** The value that the operation reads and in whose buffer it stores `written`, one of those that it writes. */
  inPlace(op: Of, written: Value): Value | undefined;
}

const readsNone = () => [];
const readsX = ({ x }: { readonly x: Value }) => [x];
const readsLogits = ({ logits }: { readonly logits: Value }) => [logits];
const writesOut = ({ out }: { readonly out: Value }) => [out];
const elsewhere = () => undefined;
/** One output in a buffer of its own. */
const INTO_OUT = { writes: writesOut, inPlace: elsewhere };

const OPERANDS: { readonly [Kind in LoweredOp["kind"]]: Operands<OpOf<Kind>> } = {
  norm: {
    reads: ({ from, to }) => [...normReads(from), ...to ? [to] : []],
    writes: ({ from, out, keep }) => [
      ...streamOf(from),
      out,
      ...keep && "out" in keep ? [keep.out] : [],
    ],
    inPlace: ({ from, out, to }, written) => {
      if (written === out) return to;
      return "stream" in from && written === from.stream ? from.x : undefined;
    },
  },
  matmul: {
    reads: matmulReads,
    writes: matmulWrites,
    inPlace: ({ epilogue, out }, written) =>
      epilogue.of === "add" && written === out ? epilogue.to : undefined,
  },
  attention: {
    reads: attentionReads,
    writes: ({ stage, partial, out }) =>
      stage === "combine" ? [out] : [...partialsOf(partial), out],
    inPlace: elsewhere,
  },
  latent_prepare: { reads: readsX, ...INTO_OUT },
  latent_attention: {
    reads: ({ q }) => [q],
    writes: ({ partial, out, value }) => [
      ...partialsOf(partial),
      out,
      ...value ? [value.out] : [],
    ],
    inPlace: elsewhere,
  },
  latent_value: { reads: readsX, ...INTO_OUT },
  expert_matmul: {
    reads: ({ x, choice, experts, tiles }) => [
      x,
      choice ? choice.logits : experts,
      ...tiles ? [tiles] : [],
    ],
    writes: ({ choice, experts, out }) => choice ? [experts, choice.shares, out] : [out],
    inPlace: elsewhere,
  },
  expert_tiles: { reads: ({ experts }) => [experts], ...INTO_OUT },
  expert_sums: {
    reads: ({ x, experts, shares, stream }) => [x, experts, shares, stream],
    writes: writesOut,
    inPlace: ({ stream }) => stream,
  },
  expert_gate: { reads: ({ x, experts }) => [x, experts], ...INTO_OUT },
  combine: {
    reads: ({ x, shares, bias, to }) => [
      x,
      shares,
      ...bias ? [bias.experts] : [],
      ...to ? [to] : [],
    ],
    writes: writesOut,
    inPlace: ({ to }) => to,
  },
  normed_router: {
    reads: ({ from }) => normReads(from),
    writes: ({ from, normed, logits }) => [...streamOf(from), normed, logits],
    inPlace: elsewhere,
  },
  fused: {
    reads: ({ first, second }) => [...readsOf(first), ...readsOf(second)],
    writes: ({ first, second }) => [...writesOf(first), ...writesOf(second)],
    inPlace: ({ first, second }, written) => aliasOf(first, written) ?? aliasOf(second, written),
  },
  norm_pair: {
    reads: ({ hidden }) => [hidden.x],
    writes: ({ out, keep }) => [out, keep.out],
    inPlace: elsewhere,
  },
  norm_sum: {
    reads: ({ x, experts }) => [x.y, experts.outputs, experts.shares],
    ...INTO_OUT,
  },
  handoff_heads: {
    reads: ({ qkv }) => matmulReads(qkv),
    writes: ({ qkv, attention: { partial, out } }) => [
      ...matmulWrites(qkv).slice(0, -1),
      ...partialsOf(partial),
      out,
    ],
    inPlace: elsewhere,
  },
  half_rows: { reads: readsX, ...INTO_OUT },
  handoff_mlp: {
    // The outputs of `first` are passed in handoff words.
    reads: ({ first, gateUp }) =>
      first
        ? [...matmulReads(first), ...matmulReads(gateUp).filter((value) => value !== first.out)]
        : matmulReads(gateUp),
    // The activations are passed in handoff words, but their operand is bound too, so they count as written.
    writes: ({ gateUp, down }) => [...matmulWrites(gateUp), down.out],
    inPlace: elsewhere,
  },
  embed: { reads: readsNone, ...INTO_OUT },
  gather: { reads: readsX, ...INTO_OUT },
  place: { reads: readsX, ...INTO_OUT },
  add: { reads: ({ x, y }) => [x, y], writes: writesOut, inPlace: ({ x }) => x },
  gate: { reads: readsX, ...INTO_OUT },
  elementwise: { reads: readsX, ...INTO_OUT },
  scale_by: { reads: readsX, ...INTO_OUT },
  store_heads: { reads: ({ qkv }) => [qkv], ...INTO_OUT },
  short_conv: { reads: readsX, ...INTO_OUT },
  delta_rule: { reads: ({ conv, mixed, rates }) => [conv ? conv.x : mixed, rates], ...INTO_OUT },
  gated_norm: { reads: ({ x, gate }) => [x, gate], ...INTO_OUT },
  gate_by: { reads: ({ x, by }) => [x, by], ...INTO_OUT },
  output_gate: { reads: ({ x, gate }) => [x, gate.value], ...INTO_OUT },
  route: {
    reads: readsLogits,
    writes: ({ out, shares }) => [out, shares],
    inPlace: elsewhere,
  },
  scatter: { reads: readsX, ...INTO_OUT },
  copy: { reads: readsX, writes: () => [], inPlace: elsewhere },
  partials: { reads: readsLogits, ...INTO_OUT },
  verify_rows: { reads: readsNone, writes: () => [], inPlace: elsewhere },
  call: { reads: ({ reads }) => reads, writes: ({ writes }) => writes, inPlace: elsewhere },
};

function operandsOf(op: LoweredOp): Operands<LoweredOp> {
  return OPERANDS[op.kind] as Operands<LoweredOp>;
}

/** The values that an operation reads. */
export function readsOf(op: LoweredOp): readonly Value[] {
  return operandsOf(op).reads(op);
}

/** The values that an operation writes. */
export function writesOf(op: LoweredOp): readonly Value[] {
  return operandsOf(op).writes(op);
}

/** The value that an operation reads and in whose buffer it stores `written`; undefined: `written` has another one. */
export function aliasOf(op: LoweredOp, written: Value): Value | undefined {
  return operandsOf(op).inPlace(op, written);
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
