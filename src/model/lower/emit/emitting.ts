/** What all files here need to turn operations into dispatches. */
import type { OutputGates } from "../../../../kernels/lib/heads.ts";
import type { Operand } from "../../../gpu/kernel.ts";
import type { DecoderContext } from "../../graph/context.ts";
import type { GateColumns, Value } from "../../graph/graph.ts";
import type { ScaledInput } from "../ops.ts";

/** Where the values of operations are. */
export interface Placing {
  readonly context: DecoderContext;
  at(value: Value): Operand;
}

/** What is needed to turn operations into dispatches. */
export interface Emitting extends Placing {
  /** The number of partial results per row of each value that has some. */
  readonly partials: Map<Value, number>;
}

/** @throws Error: always; for a value that a correct plan has. */
export function missing(what: string): never {
  throw new Error(`there are no ${what}`);
}

/** Gates as kernels take them. */
export function gatesOf(
  at: Placing["at"],
  { value, first, width, gating }: GateColumns,
): OutputGates {
  return { values: at(value), cols: value.cols, first, width, gating };
}

/** The buffer for the row scales of an input: f32 [rows], for `act` [jobs]. */
export function scalesOf(
  { scales }: DecoderContext,
  input: ScaledInput | undefined,
): Operand | undefined {
  if (!scales || input === undefined) return undefined;
  if (input === "normed") return scales.normed;
  const { reduced: { buffer, offset = 0, size = buffer.size - offset }, stride } = scales;
  return input === "act"
    ? { buffer, offset: offset + 4 * stride, size: size - 4 * stride }
    : { buffer, offset, size: 4 * stride };
}

/** Where the scales of f16 rows are stored for the matmul that follows. */
export function halfScalesOf({ tuning: { tensor } }: DecoderContext, label: string): Operand {
  if (!tensor) throw new Error(`${label}: only matrix units read f16 rows`);
  return tensor.xScales;
}
