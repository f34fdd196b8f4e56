/** Layers with a state as dispatches. */
import { deltaRule } from "../../../../kernels/recurrent/delta_rule.ts";
import { shortConv } from "../../../../kernels/recurrent/short_conv.ts";
import type { Dispatch } from "../../../gpu/kernel.ts";
import type { OpOf } from "../ops.ts";
import type { Emitting } from "./emitting.ts";

export function emitShortConv({ at }: Emitting, op: OpOf<"short_conv">): Dispatch[] {
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

export function emitDeltaRule({ at }: Emitting, op: OpOf<"delta_rule">): Dispatch[] {
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
