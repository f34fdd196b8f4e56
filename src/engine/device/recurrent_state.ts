/** What recurrent layers keep of each slot, where others keep keys and values of every token. */
import type { Arena } from "../../gpu/arena.ts";
import { stepWords } from "../../../kernels/recurrent/delta_rule.ts";
import { convWidth, type RecurrentSpec } from "../../model/config/layer_config.ts";
import type { LayerState } from "../../model/graph/graph.ts";
import { PAGE } from "../../model/device_layout.ts";
import { type EngineSizes, maxRows } from "./buffers.ts";

/** What the size of a state depends on. */
export type StateSizes = Pick<EngineSizes, "batch" | "shapes" | "keptStates">;

/**
 * Allocates the state of a layer for all slots. It is addressed by positions: the next round's rows overwrite those of
 * rejected drafts, so nothing must be undone, and a row at position 0 reads none of it, so no reset is needed.
 */
export function layerState(
  arena: Arena,
  label: string,
  spec: RecurrentSpec,
  capacity: StateSizes,
): LayerState {
  const rows = maxRows(capacity);
  const floats = (name: string, ofSlot: number) =>
    arena.allocate(`${label}.${name}`, 4 * capacity.batch * ofSlot);
  const checkpoints = (capacity.keptStates ?? 0) > 0;
  // A checkpoint is less than a page behind the tokens that are surely the slot's.
  const ringRows = rows + spec.taps - 1 + (checkpoints ? PAGE : 0);
  const ring = floats("ring", ringRows * convWidth(spec));
  if (spec.kind === "conv") return { ring, ringRows };
  const { valueHeads, keyDim, valueDim } = spec;
  return {
    ring,
    ringRows,
    delta: {
      states: floats("states", (checkpoints ? 2 : 1) * valueHeads * keyDim * valueDim),
      checkpoints,
      steps: floats("steps", stepWords(spec, rows)),
      stepRows: rows,
    },
  };
}
