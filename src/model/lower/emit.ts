/** Turns each operation into dispatches: calls the kernels' functions with the operands of the operation's values. */
import { attention } from "../../../kernels/attention/attention.ts";
import { type OwnHeads } from "../../../kernels/attention/attention_row.ts";
import type { PartialSums } from "../../../kernels/lib/heads.ts";
import { normRopeStore } from "../../../kernels/attention/norm_rope_store.ts";
import { placeHeads } from "../../../kernels/attention/place_heads.ts";
import { headsWithHandoff } from "../../../kernels/attention/handoff_heads.ts";
import { attentionOnDevice, unitsOf } from "../../../kernels/attention/attention_on_device.ts";
import { canBeFused, fused, memoryOf, threadsOf } from "../../../kernels/fused.ts";
import { splitsOf } from "../../../kernels/attention/splits.ts";
import {
  addRows,
  gateRows,
  mapRows,
  scaleBy,
  sigmoidGateRows,
} from "../../../kernels/elementwise/elementwise.ts";
import {
  combineExperts,
  expertMatmul,
  expertTile,
  expertTiles,
} from "../../../kernels/experts/experts.ts";
import { gateExperts } from "../../../kernels/experts/expert_gate.ts";
import { expertSums } from "../../../kernels/experts/expert_sums.ts";
import { route } from "../../../kernels/experts/route.ts";
import { routerLogits } from "../../../kernels/experts/router_logits.ts";
import { GATES } from "../../../kernels/lib/gate.ts";
import {
  biasEpilogue,
  capEpilogue,
  clampedEpilogue,
  scaledEpilogue,
  scaleEpilogue,
} from "../../../kernels/lib/epilogue.ts";
import { type Epilogue, matmul, type PlainEpilogue } from "../../../kernels/matmul/matmul.ts";
import { matmulPartialCount, matmulPartials } from "../../../kernels/matmul/matmul_partials.ts";
import { qkvEpilogue } from "../../../kernels/matmul/qkv.ts";
import { lanesOf } from "../../../kernels/matmul/matmul_lanes.ts";
import { launchStages, shapeKey, splitKOf } from "../../../kernels/matmul/matmul_shape.ts";
import {
  combinedHeads,
  gatedHeads,
  normedRows,
  type NormOfRows,
  PLAIN_ROWS,
  type Prologue,
} from "../../../kernels/matmul/prologue/prologue.ts";
import { halfRows } from "../../../kernels/matmul/tensor/half_rows.ts";
import { matmulsWithHandoff } from "../../../kernels/matmul/handoff/handoff.ts";
import { prepareRows, valueRows } from "../../../kernels/mla/kv_b.ts";
import {
  latentAttention as tiledAttention,
  tilesLatents,
} from "../../../kernels/mla/latent_attention.ts";
import { latentRunsValue } from "../../../kernels/mla/latent_value.ts";
import { embed } from "../../../kernels/norm/embed.ts";
import { gatedNorm } from "../../../kernels/norm/gated_norm.ts";
import { normPair } from "../../../kernels/norm/norm_pair.ts";
import { normSum } from "../../../kernels/norm/norm_sum.ts";
import {
  type NormedExperts,
  type NormInput,
  type NormKept,
  normLanes,
  rmsNorm,
} from "../../../kernels/norm/rms_norm.ts";
import { deltaRule } from "../../../kernels/recurrent/delta_rule.ts";
import { shortConv } from "../../../kernels/recurrent/short_conv.ts";
import { copyRows, gatherRows, scatterRows } from "../../../kernels/round/move_rows.ts";
import { verifyRows } from "../../../kernels/round/round.ts";
import { slicePartialCount, slicePartials } from "../../../kernels/sample/slice_partials.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { DecoderContext } from "../graph/context.ts";
import { type ExpertJobs, jobsOfRow, type StoreHeads, type Value } from "../graph/graph.ts";
import { onPaper } from "./lifetimes.ts";
import type {
  AttentionOp,
  ExpertMatmulOp,
  LatentAttentionOp,
  LoweredOp,
  MatmulOp,
  MatmulPrologue,
  NormKeep,
  NormOp,
  NormSource,
  NormSumOp,
  OpOf,
  PartialValues,
  ScaledInput,
} from "./ops.ts";

/** What is needed to turn operations into dispatches. */
export interface Emitting {
  readonly context: DecoderContext;
  at(value: Value): Operand;
  /** The number of partial results per row of each value that has some. */
  readonly partials: Map<Value, number>;
}

/** The dispatches of an operation. */
export function emit(to: Emitting, op: LoweredOp): Dispatch[] {
  const all = dispatchesOf(to, op);
  const { forCells } = op;
  return forCells ? all.map((each) => ({ ...each, forCells })) : all;
}

function dispatchesOf(to: Emitting, op: LoweredOp): Dispatch[] {
  const { context, at } = to;
  const { config, tuning } = context;
  switch (op.kind) {
    case "embed": {
      const { table: matrix, rows, scale, out, label } = op;
      return embed({ matrix, rows, out: at(out) }, {
        count: out.rows,
        scale,
        label,
        outCols: out.cols,
      });
    }
    case "norm":
      return emitNorm(to, op);
    case "matmul":
      return emitMatmul(to, op);
    case "add": {
      const { x, y, label } = op;
      const { rows, cols } = x;
      return [addRows({ x: at(x), y: at(y) }, { rows, cols, parts: y.parts, label })];
    }
    case "gate": {
      const { x, out, activation, label } = op;
      const { rows, cols } = out;
      return [gateRows({ x: at(x), out: at(out) }, { rows, cols, activation, label })];
    }
    case "half_rows": {
      const { x, out, label } = op;
      const scales = halfScalesOf(context, label);
      const { rows, cols } = x;
      return [halfRows({ x: at(x), scales, out: at(out) }, { rows, cols, label })];
    }
    case "elementwise": {
      const { x, out, f, label } = op;
      const { rows, cols } = out;
      return [mapRows({ x: at(x), out: at(out) }, { rows, cols, f, label })];
    }
    case "scale_by": {
      const { x, scalar, out, label } = op;
      const { rows, cols } = out;
      return [scaleBy({ x: at(x), scalar, out: at(out) }, { rows, cols, label })];
    }
    case "store_heads":
      return [emitHeads(to, op)];
    case "attention":
      return emitAttention(to, op);
    case "short_conv": {
      const { x, form, weight, taps, state, of, out, label } = op;
      return shortConv({ x: at(x), weight, rows: of.rows, ring: state.ring, out: at(out) }, {
        form,
        cols: out.cols,
        xCols: x.cols,
        taps,
        ringRows: state.ringRows,
        count: of.count,
        paths: of.paths,
        label,
      });
    }
    case "delta_rule": {
      const { mixed, rates, decay: decayWeights, heads, memory, of, conv, out, label } = op;
      const { rows, ...shape } = of;
      const values = { mixed: at(conv ? conv.x : mixed), rates: at(rates), out: at(out) };
      const before = conv && {
        weight: conv.weight,
        xCols: conv.x.cols,
        ...conv.state,
      };
      return [
        deltaRule({ memory, rows, decayWeights, conv: before, ...values }, {
          heads,
          ...shape,
          label,
        }),
      ];
    }
    case "gated_norm": {
      const { x, gate, first, weight, headDim, eps, put, storesScales, out, label } = op;
      const { rows, cols } = out;
      const values = { x: at(x), gate: at(gate), weight, out: at(out) };
      return [
        gatedNorm({ ...values, scales: storesScales ? context.scales : undefined }, {
          rows,
          cols,
          headDim,
          eps,
          put,
          label,
          gate: { cols: gate.cols, first },
          lanes: tuning.rowLanes,
        }),
      ];
    }
    case "sigmoid_gate": {
      const { x, gate, first, whole, out, label } = op;
      const { rows, cols } = out;
      return [
        sigmoidGateRows({ x: at(x), gate: at(gate), out: at(out) }, {
          rows,
          cols,
          gate: { cols: gate.cols, first, whole },
          label,
        }),
      ];
    }
    case "latent_prepare": {
      const { x, out, latent, queries, heads, kvB, normWeight, eps, to: { kv, rope, of }, label } =
        op;
      const { tablePages, kvDtype, pages } = context;
      const input = { x: at(x), cols: x.cols, latent, queries };
      return prepareRows(
        { kvB, input, out: at(out), normWeight, rope, rows: of.rows, pages, latents: kv.keys },
        { ...heads, count: of.count, eps, tuning, tablePages, kvDtype, label },
      );
    }
    case "latent_attention":
      return emitLatentAttention(to, op);
    case "latent_value": {
      const { x, kvB, out, storesScales } = op;
      const scales = scalesOf(context, storesScales ? "attentionOutput" : undefined);
      return [
        valueRows({ kvB, attentionOutput: at(x), out: at(out), scales }, {
          ...op.heads,
          count: out.rows,
          tuning,
          label: op.label,
        }),
      ];
    }
    case "route": {
      const { logits, bias, factors, jobs, out, shares, label } = op;
      const { routing, ...behind } = jobs;
      const choice = { experts: at(out), weights: at(shares) };
      const buffers = { logits: at(logits), bias, factors, ...choice };
      const stride = logits.cols;
      // Few rows do not use matrix units, so more rows must not either: the bits have to be the same.
      const rules = { ...tuning, tensor: undefined };
      return [
        route(buffers, {
          ...routing,
          ...behind,
          rows: logits.rows,
          tuning: rules,
          stride,
          label,
        }),
      ];
    }
    case "normed_router": {
      const {
        from,
        weight: norm,
        expertsWeight,
        eps,
        matrix,
        bias,
        normed,
        logits,
        storesScales,
        label,
      } = op;
      const added = from.of === "sums"
        ? { sums: at(from.y), splitK: from.y.parts, stream: at(from.stream) }
        : undefined;
      const row = { x: at(from.x), added, norm, expertsNorm: expertsWeight, normed: at(normed) };
      const scales = storesScales ? context.scales : undefined;
      return [
        routerLogits({ matrix, bias, ...row, logits: at(logits), scales }, {
          rows: from.x.rows,
          eps,
          tuning: { ...tuning, tensor: undefined },
          label,
        }),
      ];
    }
    case "expert_tiles": {
      const { matrix, experts, jobs, rows, out: tiles, label } = op;
      const shape = tiledJobs(to, jobs, rows, matrix);
      const lists = { experts: at(experts), tiles: at(tiles) };
      return expertTiles(lists, { ...shape, matrix, tuning, label });
    }
    case "expert_matmul":
      return emitExpertMatmul(to, op);
    case "expert_sums": {
      const { matrix, x, experts, shares, bias, jobs, stream: out, label } = op;
      const shape = { ...jobCounts(jobs, out.rows), shared: jobs.shared, tuning, label };
      const buffers = { x: at(x), experts: at(experts), weights: at(shares), out: at(out) };
      return expertSums({ matrix, bias, ...buffers }, shape);
    }
    case "expert_gate": {
      const { x, bias, experts, limit, out, label } = op;
      const { rows, cols } = out;
      const buffers = { x: at(x), bias, experts: at(experts), out: at(out) };
      return [gateExperts(buffers, { rows, cols, limit, label })];
    }
    case "combine": {
      const { x, shares, bias, to: added, out, label } = op;
      const shape = { rows: out.rows, topK: shares.cols, cols: out.cols, label };
      const buffers = {
        y: at(x),
        weights: at(shares),
        out: at(out),
        bias: bias && { values: bias.values, experts: at(bias.experts) },
      };
      return [combineExperts(buffers, { ...shape, add: added !== undefined })];
    }
    case "fused":
      return [emitFused(to, op) ?? missing(`one dispatch of ${op.label}`)];
    case "norm_pair": {
      const { token: { table: matrix, ...token }, hidden, keep, out, eps, label } = op;
      const { x, index, weight } = hidden;
      const both = {
        token: { matrix, ...token },
        hidden: { x: at(x), splitK: x.parts, index, weight },
        out: at(out),
        kept: { what: keep.what, out: at(keep.out) },
        scales: op.storesScales ? context.scales : undefined,
        put: op.put,
      };
      const shape = { rows: out.rows, cols: config.hiddenSize, eps, lanes: tuning.rowLanes };
      return [normPair(both, { ...shape, label })];
    }
    case "norm_sum": {
      const { x: { y, weight }, experts, eps, out, label } = op;
      return [
        normSum({
          x: { sums: at(y), splitK: y.parts, weight },
          experts: normedExperts(at, experts),
          out: at(out),
        }, { rows: out.rows, cols: out.cols, eps, lanes: tuning.rowLanes, label }),
      ];
    }
    case "handoff_heads": {
      const { qkv, attention: scores, label } = op;
      const prologue = qkv.prologue ? prologueOf(to, qkv, qkv.prologue) : PLAIN_ROWS;
      const words = (context.handoff ?? missing("handoff buffers")).heads;
      const buffers = { matrix: qkv.matrix, x: at(qkv.x), words };
      return [
        headsWithHandoff(
          buffers,
          { prologue, tuning, label },
          (handoff) => attendOnce(to, scores, handoff)[0] as Dispatch,
        ),
      ];
    }
    case "handoff_mlp":
      return [emitHandoffMlp(to, op)];
    case "gather": {
      const { x, index, out, first, label } = op;
      return [
        gatherRows({ x: at(x), index, out: at(out) }, {
          rows: out.rows,
          cols: x.cols,
          outCols: out.cols,
          outFirst: first,
          label,
        }),
      ];
    }
    case "place": {
      const { x, out, first, label } = op;
      const window = { outCols: out.cols, outFirst: first };
      const shape = { rows: x.rows, cols: x.cols, ...window, label };
      return [copyRows({ x: at(x), out: at(out) }, shape)];
    }
    case "copy": {
      const { x, to: { out, ...window }, label } = op;
      return [copyRows({ x: at(x), out }, { rows: x.rows, cols: x.cols, ...window, label })];
    }
    case "scatter": {
      const { x, index, out, label } = op;
      return [
        scatterRows({ x: at(x), index, out: at(out) }, { rows: x.rows, cols: x.cols, label }),
      ];
    }
    case "partials": {
      const { logits, choice: kind, vocab, out, label } = op;
      to.partials.set(out, slicePartialCount(vocab));
      return [
        slicePartials({ logits: at(logits), partials: at(out) }, {
          kind,
          rows: logits.rows,
          vocab,
          stride: logits.cols,
          lanes: tuning.rowLanes,
          label,
        }),
      ];
    }
    case "verify_rows": {
      const { batchSlots, slots, drafts, rows, batch, perSlot, mostRows } = op;
      return [
        verifyRows({ batchSlots, slots, drafts, rows }, { batch, rows: perSlot, mostRows }),
      ];
    }
    case "call":
      return op.record(at, {
        partialsOf: (value) => to.partials.get(value) ?? missing(`partial results of ${op.label}`),
        attentionScales: op.resetsScales ? scalesOf(context, "attentionOutput") : undefined,
      });
  }
}

function missing(what: string): never {
  throw new Error(`there are no ${what}`);
}

/** The buffer for the row scales of an input: f32 [rows], for `act` [jobs]. */
function scalesOf(
  { scales }: DecoderContext,
  input: ScaledInput | undefined,
): Operand | undefined {
  if (!scales || input === undefined) return undefined;
  if (input === "normed") return scales.normed;
  const { lowered: { buffer, offset = 0, size = buffer.size - offset }, stride } = scales;
  return input === "act"
    ? { buffer, offset: offset + 4 * stride, size: size - 4 * stride }
    : { buffer, offset, size: 4 * stride };
}

function emitNorm(
  { context, at }: Emitting,
  op: OpOf<"norm"> | NormOp & { label: string },
): Dispatch[] {
  const { from, weight, eps, cols, out, first, put, keep, storesScales, label } = op;
  return rmsNorm({
    from: normInput(at, from),
    weight,
    out: at(out),
    keep: keep && normKept(at, keep),
    scales: storesScales ? context.scales : undefined,
  }, {
    rows: out.rows,
    cols,
    eps,
    lanes: context.tuning.rowLanes,
    outCols: out.cols,
    outFirst: first,
    put,
    label,
  });
}

function normInput(at: Emitting["at"], from: NormSource): NormInput {
  switch (from.of) {
    case "rows": {
      const x = at(from.x);
      return from.index ? { x, index: from.index } : { x };
    }
    case "sums": {
      const sums = { sums: at(from.y), splitK: from.y.parts };
      return from.x ? { x: at(from.x), ...sums } : sums;
    }
    case "normed": {
      const { x, y, weight, experts, scalar } = from;
      const added = experts &&
        { ...normedExperts(at, experts), sumsWeight: experts.sumsWeight };
      return { x: at(x), branch: { sums: at(y), splitK: y.parts, weight, experts: added }, scalar };
    }
    case "experts":
      return {
        stream: at(from.x),
        outputs: at(from.outputs),
        shares: at(from.shares),
        experts: from.shares.cols,
        bias: from.bias && { values: from.bias.values, experts: at(from.bias.experts) },
      };
    case "tokens": {
      const { table: matrix, rows, scale, verified } = from;
      return { matrix, rows, scale, verified };
    }
  }
}

function normedExperts(
  at: Emitting["at"],
  { outputs, shares, weight }: NormSumOp["experts"],
): NormedExperts {
  return { outputs: at(outputs), shares: at(shares), count: shares.cols, weight };
}

function normKept(at: Emitting["at"], keep: NormKeep): NormKept {
  if (keep.what === "slot") return { what: "slot", out: at(keep.out), slot: keep.slot };
  return "window" in keep
    ? { what: keep.what, ...keep.window }
    : { what: keep.what, out: at(keep.out) };
}

function emitMatmul(to: Emitting, op: OpOf<"matmul">): Dispatch[] {
  const { context, at } = to;
  const { x, matrix, out, epilogue, xScales, xIsF16, onUnits, label } = op;
  const tuning = onUnits ? context.tuning : { ...context.tuning, tensor: undefined };
  const prologue = op.prologue && prologueOf(to, op, op.prologue);
  const launch = { rows: x.rows, tuning, label, ...prologue && { prologue } };
  if (epilogue.of === "partials") {
    const { choice: kind, vocab } = epilogue;
    to.partials.set(out, matmulPartialCount(matrix, { rows: x.rows, tuning, prologue }));
    return matmulPartials({ matrix, x: at(x), partials: at(out) }, { ...launch, kind, vocab });
  }
  return matmul(
    { matrix, x: at(x), xScales: scalesOf(context, xScales), xIsF16, out: at(out) },
    { ...launch, epilogue: epilogueOf(context, op), splitK: out.parts },
  );
}

/**
 * Two operations as one dispatch. For the second it tries the measured launch, then the rule's, then workgroups of the
 * first's size. Returns undefined where either is more than one launch or the two cannot be fused.
 */
export function emitFused(
  to: Emitting,
  { first, second, label }: Pick<OpOf<"fused">, "first" | "second" | "label">,
): Dispatch | undefined {
  const { tuning } = to.context;
  const [one, ...more] = emit(to, first);
  if (!one || more.length > 0) return undefined;
  // On matrix units, one row's workgroups are one subgroup each, and many must run at once: there is no room for others.
  if (threadsOf(one) <= (tuning.tensor?.unit.lanes ?? 0)) return undefined;
  const asked = [
    to,
    withTuning(to, { launches: undefined }),
    ...inWorkgroupsOf(threadsOf(one), to, second),
  ];
  const launches = asked.flatMap((to, i) => {
    const [other, ...others] = emitMatmul(to, second);
    if (!other || others.length > 0) return [];
    // The smaller one comes first: its workgroups take as long as the other's, of which there are more.
    const both = [other, one] as const;
    const { bytes } = memoryOf(other, one) ?? { bytes: Infinity };
    const roomy = i === asked.length - 1 || bytes <= MOST_FUSED;
    return roomy && canBeFused(both, tuning) ? [both] : [];
  });
  return launches[0] && fused(launches[0], label);
}

/** Most bytes of workgroup memory of a fused workgroup: a multiprocessor with 48 KiB then has room for four. */
const MOST_FUSED = 12 << 10;

/**
 * Contexts in which a matmul without matrix units has workgroups of `threads` invocations, the longest stage first. The
 * fewer stages there are, the less often its few invocations wait for memory, and the more workgroup memory they take.
 */
function inWorkgroupsOf(threads: number, to: Emitting, { x, matrix, out }: MatmulOp): Emitting[] {
  const { context: { tuning } } = to;
  if (threads % lanesOf(matrix, tuning) > 0) return [];
  const stages = launchStages(matrix, { rows: x.rows, splitK: out.parts, tuning });
  return stages.filter((stage) => stage > 0).toSorted((a, b) => b - a).map((stage) => {
    const launch = { stage, groups: threads / tuning.lanes, pairs: 1 } as const;
    const launches = new Map([[shapeKey(matrix), new Map([[1, launch], [x.rows, launch]])]]);
    return withTuning(to, { launches });
  });
}

function withTuning(to: Emitting, others: Pick<DecoderContext["tuning"], "launches">): Emitting {
  return { ...to, context: { ...to.context, tuning: { ...to.context.tuning, ...others } } };
}

/** The kernel's parameter for a matmul's epilogue. */
export function epilogueOf(
  context: DecoderContext,
  { epilogue }: Pick<MatmulOp, "epilogue">,
): PlainEpilogue | Epilogue {
  switch (epilogue.of) {
    case "store":
    case "add":
      return epilogue.of;
    case "bias":
      return biasEpilogue(epilogue.values);
    case "gate": {
      const scales = epilogue.storesScales ? scalesOf(context, "act") : undefined;
      return scales
        ? scaledEpilogue(epilogue.activation, scales)
        : GATES[epilogue.activation].epilogue;
    }
    case "cap":
      return capEpilogue(epilogue.most);
    case "scale":
      return scaleEpilogue(epilogue.by);
    case "heads": {
      const { bias, store: { heads, to: { kv, rope, of } } } = epilogue;
      const { pages = context.pages } = kv;
      return qkvEpilogue({ ...kv, rope, rows: of.rows, pages, bias }, heads);
    }
    case "partials":
      throw new Error("partial results are recorded by their own function");
  }
}

/** The kernel's parameter for how a matmul brings x to workgroup memory. */
export function prologueOf(
  { context, at }: Pick<Emitting, "context" | "at">,
  { x, matrix }: Pick<MatmulOp, "x" | "matrix">,
  prologue: MatmulPrologue,
): Prologue {
  if (prologue.of === "norm") {
    return normedRows(normOf({ context, at }, prologue), { cols: matrix.cols, rows: x.rows });
  }
  if (prologue.of === "gated_norm") {
    const { weight, headDim, eps, gate, first } = prologue.norm;
    return gatedHeads({
      weight,
      headDim,
      eps,
      gate: { values: at(gate), cols: gate.cols, first },
    });
  }
  const { attention: { partial, of, heads, window, sinks, gate }, wide } = prologue;
  const splits = splitsOf(heads);
  const sums = { sums: at(partial.sums), stats: at(partial.stats) };
  const gates = gate && { values: at(gate.value), cols: gate.value.cols, first: gate.first };
  const partials = { ...sums, rows: of.rows, ...heads, window, splits, sinks, gate: gates };
  return combinedHeads(partials, wide);
}

/** Number of storage buffers that a matmul binds to bring x to workgroup memory. */
export function prologueBuffers(
  context: DecoderContext,
  op: Pick<MatmulOp, "x" | "matrix" | "prologue">,
): number {
  return op.prologue
    ? Object.keys(prologueOf({ context, at: onPaper }, op, op.prologue).buffers).length
    : 0;
}

function normOf(
  { context, at }: Pick<Emitting, "context" | "at">,
  { from, weight, eps, window, lowers }: Extract<MatmulPrologue, { of: "norm" }>,
): NormOfRows {
  const { config: { hiddenSize: cols }, tuning, scales } = context;
  return {
    weight,
    eps,
    lanes: normLanes({ cols, lanes: tuning.rowLanes }),
    lowers: lowers ? scales : undefined,
    kept: window,
    added: addedOf(at, from),
  };
}

function addedOf(
  at: Emitting["at"],
  from: Extract<MatmulPrologue, { of: "norm" }>["from"],
): NormOfRows["added"] {
  if (from.of === "rows") return undefined;
  const stream = at(from.stream ?? missing("stream of a norm"));
  return from.of === "sums" ? { sums: at(from.y), splitK: from.y.parts, stream } : {
    outputs: at(from.outputs),
    shares: at(from.shares),
    experts: from.shares.cols,
    stream,
  };
}

function emitHeads({ context, at }: Emitting, op: OpOf<"store_heads">): Dispatch {
  const { qkv, norm, heads, to: { kv, rope, of: { rows, count } }, out, label } = op;
  const { tuning } = context;
  const place = { rope, rows, ...kv, pages: kv.pages ?? context.pages, q: at(out) };
  if (!norm) {
    return placeHeads({ ...place, sums: at(qkv) }, { ...heads, count, splitK: qkv.parts, label });
  }
  const { weight, eps, whole, values } = norm;
  return normRopeStore(
    { ...place, qkv: at(qkv), weight },
    { ...heads, count, eps, rowHeads: qkv.cols / heads.headDim, whole, values, tuning, label },
  );
}

/** Where the scales of f16 rows are stored for the matmul that follows. */
function halfScalesOf({ tuning: { tensor } }: DecoderContext, label: string): Operand {
  if (!tensor) throw new Error(`${label}: only matrix units read f16 rows`);
  return tensor.xScales;
}

function emitAttention(to: Emitting, op: OpOf<"attention">): Dispatch[] {
  const all = attendOnce(to, op);
  switch (op.stage) {
    case "all":
      return all;
    case "scores":
      return all.slice(0, 1);
    case "combine":
      return all.slice(1);
  }
}

/** @param handoff present where the same dispatch computes q, k and v. */
export function attendOnce(
  { context, at }: Pick<Emitting, "context" | "at">,
  op: AttentionOp & { readonly label: string },
  handoff?: OwnHeads["handoff"],
): Dispatch[] {
  const {
    q,
    heads,
    scale,
    cap,
    window,
    sinks,
    kv,
    of,
    partial,
    storesScales,
    put,
    own,
    gate,
    out,
    label,
  } = op;
  const { rows, count, perSlot, paths = false } = of;
  const { tuning } = context;
  const output = at(out);
  // If the same dispatch computes q, k and v, no buffer of them is bound.
  const placed = own && ownHeads(own.store, handoff ? output : at(own.qkv), handoff);
  const buffers = {
    q: own || op.stage === "combine" ? output : at(q),
    own: placed,
    ...kv,
    rows,
    pages: kv.pages ?? context.pages,
    partial: partialOf(at, partial),
    out: output,
    scales: storesScales ? scalesOf(context, "attentionOutput") : undefined,
    halfScales: put === "half" ? halfScalesOf(context, label) : undefined,
    sinks,
    gate: gate && { values: at(gate.value), cols: gate.value.cols, first: gate.first },
  };
  return attentionOnDevice(buffers, {
    ...heads,
    scale,
    cap,
    window,
    count,
    perSlot,
    paths,
    tuning,
    label,
  });
}

function ownHeads(
  { norm, to: { rope } }: StoreHeads,
  qkv: Operand,
  handoff: OwnHeads["handoff"],
): OwnHeads {
  return {
    qkv,
    rope,
    ...handoff && { handoff },
    ...norm && {
      norm: { weight: norm.weight, eps: norm.eps, values: storedValues(norm.values) },
    },
  };
}

/** How the values are made. @throws Error if the layer stores none. */
function storedValues(values: NonNullable<StoreHeads["norm"]>["values"]) {
  return values === "none" ? missing("values") : values;
}

function partialOf(at: Emitting["at"], { sums, stats, halves }: PartialValues): PartialSums {
  return { sums: at(sums), stats: at(stats), ...halves && { halves: at(halves) } };
}

function emitLatentAttention(
  to: Emitting,
  op: LatentAttentionOp & { readonly label: string },
): Dispatch[] {
  const { context, at } = to;
  const { q, heads, scale, kv, of, out, partial, value, label } = op;
  const { rows, count, perSlot, paths = false } = of;
  const { tuning, pages } = context;
  const launch = { count, perSlot, paths, tuning, label, scale };
  const buffers = { q: at(q), rows, pages, partial: partialOf(at, partial), out: at(out) };
  if (!tilesLatents(heads, tuning)) {
    return attention({ ...kv, ...buffers }, { ...heads, ...launch });
  }
  const shape = value && { ...value.heads, count, tuning, label: value.out.label };
  const scales = scalesOf(context, value?.storesScales ? "attentionOutput" : undefined);
  return tiledAttention({ ...buffers, latents: kv.keys }, {
    ...heads,
    ...launch,
    finish: value && shape
      ? (runs) => latentRunsValue({ kvB: value.kvB, out: at(value.out), scales }, runs, shape)
      : undefined,
  });
}

function jobCounts(jobs: ExpertJobs, rows: number) {
  const { routing: { numExperts }, shared } = jobs;
  return { rows, topK: jobsOfRow(jobs), numExperts: numExperts + shared };
}

function tiledJobs(
  { context: { tuning } }: Emitting,
  of: ExpertJobs,
  rows: number,
  matrix: Parameters<typeof expertTile>[1],
) {
  const jobs = jobCounts(of, rows);
  return { ...jobs, tile: expertTile(jobs, matrix, tuning) };
}

function emitExpertMatmul(
  to: Emitting,
  op: ExpertMatmulOp & { readonly label: string },
): Dispatch[] {
  const { context, at } = to;
  const { tuning } = context;
  const {
    x,
    perJob,
    matrix,
    experts,
    jobs,
    out,
    gated,
    xScales,
    storesScales,
    choice,
    tiles,
    label,
  } = op;
  const rows = perJob ? x.rows / jobsOfRow(jobs) : x.rows;
  const outScales = storesScales ? scalesOf(context, "act") : undefined;
  return expertMatmul({
    matrix,
    x: at(x),
    xScales: scalesOf(context, xScales),
    out: at(out),
    outScales,
    experts: at(experts),
    tiles: at(tiles ?? experts),
    choice: choice && {
      routing: jobs.routing,
      sharedGate: jobs.sharedGate,
      logits: at(choice.logits),
      stride: choice.logits.cols,
      weights: at(choice.shares),
      factors: choice.factors,
    },
  }, {
    ...tiledJobs(to, jobs, rows, matrix),
    shared: jobs.shared,
    tuning,
    epilogue: expertEpilogueOf(gated, outScales),
    perJob,
    label,
  });
}

function expertEpilogueOf(gated: ExpertMatmulOp["gated"], outScales: Operand | undefined) {
  if (!gated) return "store";
  return typeof gated === "string" ? GATES[gated].epilogue : clampedEpilogue(gated, outScales);
}

function emitHandoffMlp(to: Emitting, op: OpOf<"handoff_mlp">): Dispatch {
  const { context, at } = to;
  const { gateUp, down, first, label } = op;
  const { tuning, handoff = missing("handoff buffers") } = context;
  const { epilogue, prologue } = gateUp;
  if (epilogue.of !== "gate") throw new Error(`${label}: an MLP without a gate`);
  return matmulsWithHandoff(
    { x: at(gateUp.x), handoff: handoff.act, act: at(down.x), out: at(down.out) },
    {
      gateUp: gateUp.matrix,
      down: down.matrix,
      splitK: splitKOf(down.matrix, tuning),
      tuning,
      norm: prologue?.of === "norm" ? normOf(to, prologue) : undefined,
      first: first && {
        matrix: first.matrix,
        splitK: first.out.parts,
        prologue: first.prologue ? prologueOf(to, first, first.prologue) : PLAIN_ROWS,
        x: at(first.x),
        words: handoff.heads,
      },
      gate: GATES[epilogue.activation].gate,
      label,
    },
  );
}

/** Whether attention over these heads runs on matrix units. */
export function attendsOnUnits(
  { heads }: Pick<AttentionOp, "heads">,
  { tuning }: DecoderContext,
): boolean {
  return unitsOf(heads, tuning) !== undefined;
}
