/**
 * A forward as a list of plain operations on values, like the formulas of a paper. No operation knows about kernels,
 * split-K or the next operation: `lower` turns the list into dispatches, and its rewrites make these fast.
 */
import type { Jobs } from "../../../kernels/experts/job_lists.ts";
import type { ElementFunction } from "../../../kernels/elementwise/elementwise.ts";
import type { Heads } from "../../../kernels/lib/heads.ts";
import type { LatentHeads } from "../../../kernels/mla/latent_prepare.ts";
import type { PartialKind } from "../../../kernels/lib/partial.ts";
import type { DeltaHeads, DeltaMemory } from "../../../kernels/recurrent/delta_rule.ts";
import type { ConvForm } from "../../../kernels/recurrent/short_conv.ts";
import type { Routing } from "../../../kernels/experts/route.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { type Matrix, requireRowOrder, type RowOrder, type Table } from "../../gpu/matrix.ts";
import type { Activation, Gating } from "../../../kernels/lib/gate.ts";

/** A tensor that one operation writes and later ones read: 32-bit numbers, [parts, rows, cols]. */
export interface Value {
  /** The label of the operation that writes it, for messages and profiles. */
  readonly label: string;
  readonly rows: number;
  readonly cols: number;
  /** Above 1: partial sums of split-K that are still to be added. Only rewrites make such values. */
  readonly parts: number;
  /** Where the value is stored if code outside the graph reads or writes it; absent: in scratch memory. */
  readonly at?: Operand | undefined;
}

/**
 * Keys and values of one layer, [pages, kvHeads, PAGE, headDim] each. Both are the same buffer if it stores latents.
 */
export interface LayerKv {
  readonly keys: Operand;
  readonly values: Operand;
  /** The layer's own block table, [slots, tablePages]; absent: the table of the whole context. */
  readonly pages?: Operand | undefined;
  /** The state of fixed size per slot that a recurrent layer has instead of keys and values. */
  readonly state?: LayerState;
}

/** The state that a recurrent layer keeps for each slot. */
export interface LayerState {
  /** Ring buffer of the convolution's last input rows, indexed by position, f32 [slots, ringRows, columns]. */
  readonly ring: Operand;
  readonly ringRows: number;
  /** The recurrent state of Gated DeltaNet. */
  readonly delta?: DeltaMemory;
}

/** The rows of a forward: a buffer of `Row`s and their number. */
export interface RowsOf {
  readonly rows: Operand;
  readonly count: number;
  /** Consecutive rows of one slot; divides `count`. */
  readonly perSlot: number;
  /** Whether rows may be nodes of draft trees and have paths; default false: kernels ignore paths. */
  readonly paths?: boolean;
}

/** Where the keys and values, or latents, of rows are stored for attention to read, and the rope to apply. */
export interface KvTarget {
  readonly kv: LayerKv;
  /** cos and sin of the layer's rope. */
  readonly rope: Operand;
  readonly of: RowsOf;
}

/** out = scale E[token of each row] */
export interface Embed {
  readonly kind: "embed";
  readonly table: Table;
  /** `Row`s. */
  readonly rows: Operand;
  readonly scale: number;
  readonly out: Value;
}

/** out = x / rms(x) * weight */
export interface Norm {
  readonly kind: "norm";
  readonly x: Value;
  readonly weight: Operand;
  readonly eps: number;
  readonly out: Value;
}

/** out = x W^T + bias */
export interface Linear {
  readonly kind: "linear";
  readonly x: Value;
  readonly matrix: Matrix;
  readonly bias?: Operand | undefined;
  /** Whether out are logits over a vocabulary. */
  readonly logits: boolean;
  readonly out: Value;
}

/** out = activation(gate) * up, where the columns of x are the gates and then the ups (row order gate_up). */
export interface Gate {
  readonly kind: "gate";
  readonly x: Value;
  readonly activation: Activation;
  readonly out: Value;
}

/** out = x + y */
export interface Add {
  readonly kind: "add";
  readonly x: Value;
  readonly y: Value;
  readonly out: Value;
}

/** out = f(x), number by number. */
export interface Elementwise {
  readonly kind: "elementwise";
  readonly x: Value;
  readonly f: ElementFunction;
  readonly out: Value;
}

/** out = scalar x, the scalar being read from a buffer. */
export interface ScaleBy {
  readonly kind: "scale_by";
  readonly x: Value;
  /** [1] */
  readonly scalar: Operand;
  readonly out: Value;
}

/** Rows of all of `xs`, side by side. */
export interface Concat {
  readonly kind: "concat";
  readonly xs: readonly Value[];
  readonly out: Value;
}

/** Norms q and k where the model has norms for them, and applies rope. Writes q to `out`, stores k and v in pages. */
export interface StoreHeads {
  readonly kind: "store_heads";
  /** q, k and v, [rows, (heads + 2 kvHeads) headDim]; without norms the columns are those of row order rope_halves. */
  readonly qkv: Value;
  readonly norm: {
    /** [2, headDim], or with `whole` [heads + kvHeads, headDim]. */
    readonly weight: Operand;
    readonly eps: number;
    readonly whole: boolean;
    /**
     * "normed": v is normed too, without weights. "keys": v is k before its norm and rope, normed without weights, and
     * qkv is [rows, (heads + kvHeads) headDim]. "none": qkv is q alone, and nothing is stored. Absent: v is not normed.
     */
    readonly values?: "normed" | "keys" | "none" | undefined;
    /** Whether q and k are normed after rope; absent: before. */
    readonly afterRope?: boolean | undefined;
  } | undefined;
  readonly heads: Heads;
  readonly to: KvTarget;
  /** Rotated queries, [rows, heads headDim]. */
  readonly out: Value;
}

/**
 * out = softmax(cap(scale q k^T)) v over the pages of each row's slot; a head's sink is one more logit, without a
 * value.
 */
export interface Attention {
  readonly kind: "attention";
  readonly q: Value;
  readonly heads: Heads;
  readonly scale: number;
  readonly cap: number | undefined;
  readonly window: number | undefined;
  /** f32 [heads] */
  readonly sinks?: Operand | undefined;
  readonly kv: LayerKv;
  readonly of: RowsOf;
  readonly out: Value;
}

/**
 * A causal convolution of each column over a row and the rows before it in its slot; see
 * kernels/recurrent/short_conv.wgsl.
 */
export interface ShortConvolution {
  readonly kind: "short_conv";
  readonly x: Value;
  readonly form: ConvForm;
  /** [columns of out, taps] */
  readonly weight: Operand;
  readonly taps: number;
  readonly state: LayerState;
  readonly of: RowsOf;
  readonly out: Value;
}

/** The recurrence of Gated DeltaNet; see kernels/recurrent/delta_rule.wgsl. */
export interface DeltaRule {
  readonly kind: "delta_rule";
  /** q, k and v after the convolution. */
  readonly mixed: Value;
  /** b and a. */
  readonly rates: Value;
  /** A_log and dt_bias. */
  readonly decay: Operand;
  readonly heads: DeltaHeads;
  readonly memory: DeltaMemory;
  readonly of: RowsOf;
  readonly out: Value;
}

/**
 * out = weight * x / rms(x) * silu(gate). rms is per head of x; the gate's columns begin at `first`.
 */
export interface GatedNorm {
  readonly kind: "gated_norm";
  readonly x: Value;
  readonly gate: Value;
  readonly first: number;
  /** The norm's weights, the same for all heads, [headDim]. */
  readonly weight: Operand;
  /** Columns of a head. */
  readonly headDim: number;
  readonly eps: number;
  readonly out: Value;
}

/** out = x * f(gates) */
export interface OutputGate {
  readonly kind: "output_gate";
  readonly x: Value;
  readonly gate: GateColumns;
  readonly out: Value;
}

/** Gates of a row: columns of `value` from `first` on, one for each `width` neighbouring numbers that f multiplies. */
export interface GateColumns {
  readonly value: Value;
  readonly first: number;
  readonly width: number;
  /** What f is. */
  readonly gating: Gating;
}

/** out = gelu(x) * by: the rows of `by` are as wide as those of x and begin at its number `first`, a multiple of 64. */
export interface GateBy {
  readonly kind: "gate_by";
  readonly x: Value;
  readonly by: Value;
  readonly first: number;
  readonly out: Value;
}

/** Stores latents of x and absorbs its queries; see kernels/mla/latent_prepare.ts. */
export interface LatentPrepare {
  readonly kind: "latent_prepare";
  readonly x: Value;
  /** Where the latent begins in a row of x; undefined: x is queries alone. */
  readonly latent: number | undefined;
  readonly queries: boolean;
  readonly heads: LatentHeads;
  readonly kvB: Table;
  readonly normWeight: Operand;
  readonly eps: number;
  readonly to: KvTarget;
  /** Absorbed queries, [rows, heads (rank + rope)]; not written where x has none. */
  readonly out: Value;
}

/** out = weighted sums of latents, [rows, heads (rank + rope)]. */
export interface LatentAttention {
  readonly kind: "latent_attention";
  readonly q: Value;
  readonly heads: Heads & { readonly rank: number };
  readonly scale: number;
  readonly kv: LayerKv;
  readonly of: RowsOf;
  readonly out: Value;
}

/** out = W_h x for each head h: turns weighted sums of latents into weighted sums of values. */
export interface LatentValue {
  readonly kind: "latent_value";
  readonly x: Value;
  readonly heads: LatentHeads;
  readonly kvB: Table;
  readonly out: Value;
}

/** The experts that a row runs: those chosen for it, and the last `shared` of the stack, which every row runs. */
export interface ExpertJobs {
  readonly routing: Routing;
  readonly shared: number;
  /** Whether the shared experts' share is the sigmoid of the logit after the experts' logits; default: it is 1. */
  readonly sharedGate?: boolean | undefined;
}

/** Chooses each row's experts by the router's logits. */
export interface Route {
  readonly kind: "route";
  readonly logits: Value;
  /** Added to scores for the choice only, [experts], where they are biased. */
  readonly bias: Operand | undefined;
  /** What experts' shares are multiplied by, [experts]. */
  readonly factors: Operand | undefined;
  readonly jobs: ExpertJobs;
  /** The chosen experts, u32 [rows, topK + shared]. */
  readonly out: Value;
  /** The weight of each chosen expert's output, [rows, topK + shared]. */
  readonly shares: Value;
}

/** out = x W_e^T for the experts e of each row, [rows, jobs, cols]. A job is one expert of one row. */
export interface ExpertLinear {
  readonly kind: "expert_linear";
  readonly x: Value;
  /** Whether x has one row per job; otherwise all jobs of a row read the same row of x. */
  readonly perJob: boolean;
  readonly matrix: Matrix;
  readonly experts: Value;
  readonly jobs: ExpertJobs;
  readonly out: Value;
}

/**
 * out = gate sigmoid(1.702 gate) (up + 1). gate and up are neighbouring columns of x plus their expert's biases; gate
 * is clamped to at most `limit`, up to -limit .. limit. Each row of x is a job.
 */
export interface ExpertGate {
  readonly kind: "expert_gate";
  readonly x: Value;
  /** [experts, cols of x] */
  readonly bias: Operand;
  readonly experts: Value;
  readonly limit: number;
  readonly out: Value;
}

/** out = the sum of share times output over a row's experts, in the order of their choice. */
export interface Combine {
  readonly kind: "combine";
  readonly x: Value;
  readonly shares: Value;
  /** Biases of the experts, [experts, cols], added to their outputs. */
  readonly bias?: { readonly values: Operand; readonly experts: Value } | undefined;
  readonly out: Value;
}

/** out[r] = x[index[r]] */
export interface Gather {
  readonly kind: "gather";
  readonly x: Value;
  readonly index: Operand;
  readonly out: Value;
}

/** out[index[r]] = x[r]; `out` is stored outside scratch memory. */
export interface Scatter {
  readonly kind: "scatter";
  readonly x: Value;
  readonly index: Operand;
  readonly out: Value;
}

/** Copies the rows of x into a window of `to`. */
export interface Copy {
  readonly kind: "copy";
  readonly x: Value;
  readonly to: Window;
}

/** A range of columns of a buffer outside the graph. */
export interface Window {
  readonly out: Operand;
  /** Row stride of out. */
  readonly outCols: number;
  readonly outFirst: number;
}

/** Partial results, one per slice of a row of logits: out is u32 [rows, slices, PARTIAL_WORDS[choice]]. */
export interface Partials {
  readonly kind: "partials";
  readonly logits: Value;
  readonly choice: PartialKind;
  readonly vocab: number;
  /** Most partial results, of all rows together, that the reader accepts; absent: any number. */
  readonly most: number | undefined;
  readonly out: Value;
}

/** Writes the `Row`s of a verify forward of chains; see kernels/lib/verify_row.wgsl. */
export interface VerifyRows {
  readonly kind: "verify_rows";
  readonly batchSlots: Operand;
  readonly slots: Operand;
  readonly drafts: Operand;
  readonly rows: Operand;
  readonly batch: number;
  readonly perSlot: number;
  readonly maxRows: number;
}

/** Dispatches of kernels that no rewrite knows. */
export interface Call {
  readonly kind: "call";
  readonly reads: readonly Value[];
  readonly writes: readonly Value[];
  /** Whether it resets the scales of attention's output to the largest value, as a norm that stores scales does. */
  readonly resetsScales?: boolean;
  record(at: (value: Value) => Operand, of: CallContext): Dispatch[];
}

/** What the lowering offers to a call. */
export interface CallContext {
  /** Returns the number of partial results per row of a value that `partials` wrote. */
  partialsOf(value: Value): number;
  /** The scales of the rows of attention's output, if the call `resetsScales` and they are in use. */
  readonly attentionScales: Operand | undefined;
}

export type Operation =
  | Embed
  | Norm
  | Linear
  | Gate
  | Add
  | Elementwise
  | ScaleBy
  | Concat
  | StoreHeads
  | Attention
  | ShortConvolution
  | DeltaRule
  | GatedNorm
  | OutputGate
  | GateBy
  | LatentPrepare
  | LatentAttention
  | LatentValue
  | Route
  | ExpertLinear
  | ExpertGate
  | Combine
  | Gather
  | Scatter
  | Copy
  | Partials
  | VerifyRows
  | Call;

/** An operation, its name in profiles, and the part of the graph that its dispatches belong to. */
export type Op = Operation & { readonly label: string; readonly part: string };

/** Records operations in the order in which they run. */
export class Graph {
  readonly ops: Op[] = [];
  #part: string;

  /** @param part the part that the next operations belong to; see `begin`. */
  constructor(part: string = "all") {
    this.#part = part;
  }

  /** Begins another part for the next operations: each part becomes a separate program. */
  begin(part: string): void {
    this.#part = part;
  }

  /** Returns a value that was written before and is stored outside the graph. */
  input(label: string, rows: number, cols: number, at: Operand): Value {
    return { label, rows, cols, parts: 1, at };
  }

  embed(
    { table, rows, count, scale = 1 }: {
      readonly table: Table;
      readonly rows: Operand;
      readonly count: number;
      readonly scale?: number;
    },
    label: string,
  ): Value {
    const out = value(label, count, table.cols);
    return this.#add({ kind: "embed", table, rows, scale, out }, label);
  }

  norm(
    x: Value,
    { weight, eps, at }: {
      readonly weight: Operand;
      readonly eps: number;
      readonly at?: Operand | undefined;
    },
    label: string,
  ): Value {
    return this.#add({ kind: "norm", x, weight, eps, out: like(x, label, at) }, label);
  }

  linear(
    x: Value,
    matrix: Matrix,
    { rowOrder = "stacked", bias, logits = false, at, label }: {
      /** The row order that the reader of the outputs expects; default: stacked. */
      readonly rowOrder?: RowOrder | undefined;
      readonly bias?: Operand | undefined;
      readonly logits?: boolean;
      readonly at?: Operand | undefined;
      readonly label: string;
    },
  ): Value {
    requireRowOrder(matrix, rowOrder, label);
    const out = { ...value(label, x.rows, matrix.rows), at };
    return this.#add({ kind: "linear", x, matrix, bias, logits, out }, label);
  }

  gate(x: Value, activation: Activation, label: string): Value {
    const out = value(label, x.rows, x.cols / 2);
    return this.#add({ kind: "gate", x, activation, out }, label);
  }

  add(x: Value, y: Value, label: string, at?: Operand): Value {
    return this.#add({ kind: "add", x, y, out: like(x, label, at) }, label);
  }

  softCap(x: Value, most: number, label: string, at?: Operand): Value {
    return this.#elementwise(x, { of: "cap", most }, label, at);
  }

  /** Returns x itself where `by` is 1 and `at` is absent. */
  scale(x: Value, by: number, label: string, at?: Operand): Value {
    if (by === 1 && at === undefined) return x;
    return this.#elementwise(x, { of: "scale", by }, label, at);
  }

  scaleBy(x: Value, scalar: Operand, label: string, at?: Operand): Value {
    return this.#add({ kind: "scale_by", x, scalar, out: like(x, label, at) }, label);
  }

  concat(xs: readonly [Value, ...Value[]], label: string): Value {
    const out = value(label, xs[0].rows, xs.reduce((sum, { cols }) => sum + cols, 0));
    return this.#add({ kind: "concat", xs, out }, label);
  }

  storeHeads(
    qkv: Value,
    { at, ...of }: Pick<StoreHeads, "norm" | "heads" | "to"> & {
      readonly at?: Operand | undefined;
    },
    label: string,
  ): Value {
    const out = { ...value(label, qkv.rows, of.heads.heads * of.heads.headDim), at };
    return this.#add({ kind: "store_heads", qkv, ...of, out }, label);
  }

  attention(
    q: Value,
    of: Pick<Attention, "heads" | "scale" | "cap" | "window" | "sinks" | "kv" | "of">,
    label: string,
  ): Value {
    return this.#add({ kind: "attention", q, ...of, out: like(q, label) }, label);
  }

  shortConv(
    x: Value,
    { cols, ...of }: Pick<ShortConvolution, "form" | "weight" | "taps" | "state" | "of"> & {
      readonly cols: number;
    },
    label: string,
  ): Value {
    return this.#add({ kind: "short_conv", x, ...of, out: value(label, x.rows, cols) }, label);
  }

  deltaRule(
    mixed: Value,
    of: Pick<DeltaRule, "rates" | "decay" | "heads" | "memory" | "of">,
    label: string,
  ): Value {
    const { valueHeads, valueDim } = of.heads;
    const out = value(label, mixed.rows, valueHeads * valueDim);
    return this.#add({ kind: "delta_rule", mixed, ...of, out }, label);
  }

  gatedNorm(
    x: Value,
    of: Pick<GatedNorm, "gate" | "first" | "weight" | "headDim" | "eps">,
    label: string,
  ): Value {
    return this.#add({ kind: "gated_norm", x, ...of, out: like(x, label) }, label);
  }

  outputGate(x: Value, gate: GateColumns, label: string): Value {
    return this.#add({ kind: "output_gate", x, gate, out: like(x, label) }, label);
  }

  gateBy(x: Value, by: Pick<GateBy, "by" | "first">, label: string): Value {
    return this.#add({ kind: "gate_by", x, ...by, out: like(x, label) }, label);
  }

  /** @param of.queries whether x contains queries; otherwise x is the latent alone. */
  latentPrepare(
    x: Value,
    of: Pick<
      LatentPrepare,
      "latent" | "queries" | "heads" | "kvB" | "normWeight" | "eps" | "to"
    >,
    label: string,
  ): Value {
    const { heads, rank, rope } = of.heads;
    const out = value(label, x.rows, heads * (rank + rope));
    return this.#add({ kind: "latent_prepare", x, ...of, out }, label);
  }

  latentAttention(
    q: Value,
    of: Pick<LatentAttention, "heads" | "scale" | "kv" | "of">,
    label: string,
  ): Value {
    return this.#add({ kind: "latent_attention", q, ...of, out: like(q, label) }, label);
  }

  latentValue(x: Value, of: Pick<LatentValue, "heads" | "kvB">, label: string): Value {
    const out = value(label, x.rows, of.heads.heads * of.heads.value);
    return this.#add({ kind: "latent_value", x, ...of, out }, label);
  }

  route(
    logits: Value,
    of: Pick<Route, "bias" | "factors" | "jobs">,
    label: string,
  ): { readonly experts: Value; readonly shares: Value } {
    const jobs = jobsOfRow(of.jobs);
    const out = value(label, logits.rows, jobs);
    const shares = value(`${label}.shares`, logits.rows, jobs);
    this.#add({ kind: "route", logits, ...of, out, shares }, label);
    return { experts: out, shares };
  }

  expertLinear(
    x: Value,
    of: Pick<ExpertLinear, "matrix" | "experts" | "jobs" | "perJob">,
    label: string,
  ): Value {
    const { routing: { numExperts }, shared } = of.jobs;
    const rows = of.perJob ? x.rows : x.rows * jobsOfRow(of.jobs);
    const out = value(label, rows, of.matrix.rows / (numExperts + shared));
    return this.#add({ kind: "expert_linear", x, ...of, out }, label);
  }

  expertGate(
    x: Value,
    of: Pick<ExpertGate, "bias" | "experts" | "limit">,
    label: string,
  ): Value {
    const out = value(label, x.rows, x.cols / 2);
    return this.#add({ kind: "expert_gate", x, ...of, out }, label);
  }

  combine(x: Value, shares: Value, label: string, bias?: Combine["bias"]): Value {
    const out = value(label, shares.rows, x.cols);
    return this.#add({ kind: "combine", x, shares, ...bias && { bias }, out }, label);
  }

  gather(x: Value, index: Operand, rows: number, label: string, at?: Operand): Value {
    const out = { ...value(label, rows, x.cols), at };
    return this.#add({ kind: "gather", x, index, out }, label);
  }

  scatter(x: Value, index: Operand, at: Operand, label: string): void {
    this.#add({ kind: "scatter", x, index, out: like(x, label, at) }, label);
  }

  copy(x: Value, to: Window, label: string): void {
    this.ops.push({ kind: "copy", x, to, label, part: this.#part });
  }

  partials(
    logits: Value,
    of: Pick<Partials, "choice" | "vocab"> & { readonly most?: number | undefined },
    label: string,
  ): Value {
    // The width is not known yet: it depends on the kernel that writes the value, see `widen`.
    const out = value(label, logits.rows, 0);
    return this.#add({ kind: "partials", logits, ...of, most: of.most, out }, label);
  }

  verifyRows(of: Omit<VerifyRows, "kind">): void {
    this.ops.push({ kind: "verify_rows", ...of, label: "verify_rows", part: this.#part });
  }

  call(of: Omit<Call, "kind">, label: string = ""): void {
    this.ops.push({ kind: "call", ...of, label, part: this.#part });
  }

  /** Dispatches that read and write nothing of the graph. */
  dispatches(...all: readonly Dispatch[]): void {
    if (all.length > 0) this.call({ reads: [], writes: [], record: () => [...all] });
  }

  #elementwise(x: Value, f: ElementFunction, label: string, at?: Operand): Value {
    return this.#add({ kind: "elementwise", x, f, out: like(x, label, at) }, label);
  }

  #add(op: Extract<Operation, { readonly out: Value }>, label: string): Value {
    this.ops.push({ ...op, label, part: this.#part });
    return op.out;
  }
}

/** The number of experts that a row runs, shared ones included. */
export function jobsOfRow({ routing, shared }: ExpertJobs): number {
  return routing.topK + shared;
}

/** The jobs of `rows` rows, shared experts included. */
export function jobCounts(of: ExpertJobs, rows: number): Jobs {
  return { rows, topK: jobsOfRow(of), numExperts: of.routing.numExperts + of.shared };
}

/** A value in scratch memory. */
export function value(label: string, rows: number, cols: number): Value {
  return { label, rows, cols, parts: 1 };
}

/** Sets the width of a value once the kernel that writes it is chosen. */
export function widen(value: Value, cols: number): void {
  Object.assign(value, { cols });
}

function like({ rows, cols }: Value, label: string, at?: Operand): Value {
  return { label, rows, cols, parts: 1, at };
}
