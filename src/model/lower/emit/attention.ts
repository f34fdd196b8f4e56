/** Attention, plain and latent, as dispatches. */
import { attention } from "../../../../kernels/attention/attention.ts";
import { attentionOnDevice, unitsOf } from "../../../../kernels/attention/attention_on_device.ts";
import type { OwnHeads } from "../../../../kernels/attention/attention_row.ts";
import { normRopeStore } from "../../../../kernels/attention/norm_rope_store.ts";
import { placeHeads } from "../../../../kernels/attention/place_heads.ts";
import type { PartialSums } from "../../../../kernels/lib/heads.ts";
import { prepareRows, valueRows } from "../../../../kernels/mla/kv_b.ts";
import {
  latentAttention as tiledAttention,
  tilesLatents,
} from "../../../../kernels/mla/latent_attention.ts";
import { latentRunsValue } from "../../../../kernels/mla/latent_value.ts";
import type { Dispatch, Operand } from "../../../gpu/kernel.ts";
import type { DecoderContext } from "../../graph/context.ts";
import type { StoreHeads } from "../../graph/graph.ts";
import type { AttentionOp, LatentAttentionOp, OpOf, PartialValues } from "../ops.ts";
import {
  type Emitting,
  gatesOf,
  halfScalesOf,
  missing,
  type Placing,
  scalesOf,
} from "./emitting.ts";

export function emitHeads({ context, at }: Emitting, op: OpOf<"store_heads">): Dispatch {
  const { qkv, norm, heads, to: { kv, rope, of: { rows, count } }, out, label } = op;
  const { tuning } = context;
  const place = { rope, rows, ...kv, pages: kv.pages ?? context.pages, q: at(out) };
  if (!norm) {
    return placeHeads({ ...place, sums: at(qkv) }, { ...heads, count, splitK: qkv.parts, label });
  }
  const { weight, eps, whole, values, afterRope } = norm;
  return normRopeStore(
    { ...place, qkv: at(qkv), weight },
    { ...heads, count, eps, rowCols: qkv.cols, whole, values, afterRope, tuning, label },
  );
}

export function emitAttention(to: Emitting, op: OpOf<"attention">): Dispatch[] {
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
  { context, at }: Placing,
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
    gate: gate && gatesOf(at, gate),
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
      norm: {
        weight: norm.weight,
        eps: norm.eps,
        values: storedValues(norm.values),
        afterRope: norm.afterRope,
      },
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

/** Whether attention over these heads runs on matrix units. */
export function attendsOnUnits(
  { heads }: Pick<AttentionOp, "heads">,
  { tuning }: DecoderContext,
): boolean {
  return unitsOf(heads, tuning) !== undefined;
}

export function emitLatentPrepare(
  { context, at }: Emitting,
  op: OpOf<"latent_prepare">,
): Dispatch[] {
  const { x, out, latent, queries, heads, kvB, normWeight, eps, to: { kv, rope, of }, label } = op;
  const { tuning, tablePages, kvDtype, pages } = context;
  const input = { x: at(x), cols: x.cols, latent, queries };
  return prepareRows(
    { kvB, input, out: at(out), normWeight, rope, rows: of.rows, pages, latents: kv.keys },
    { ...heads, count: of.count, eps, tuning, tablePages, kvDtype, label },
  );
}

export function emitLatentAttention(
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

export function emitLatentValue({ context, at }: Emitting, op: OpOf<"latent_value">): Dispatch[] {
  const { x, kvB, out, storesScales } = op;
  const scales = scalesOf(context, storesScales ? "attentionOutput" : undefined);
  return [
    valueRows({ kvB, attentionOutput: at(x), out: at(out), scales }, {
      ...op.heads,
      count: out.rows,
      tuning: context.tuning,
      label: op.label,
    }),
  ];
}
