import { gatedNorm } from "../../kernels/norm/gated_norm.ts";
import { type DeltaHeads, deltaRule, stepWords } from "../../kernels/recurrent/delta_rule.ts";
import { shortConv } from "../../kernels/recurrent/short_conv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { packRows } from "../../tests/kernels/rows.ts";
import type { Allocations } from "../allocations.ts";
import { copiesOf, type MicroCase } from "../case.ts";

type NamedHeads = DeltaHeads & { readonly name: string };

/** Gated DeltaNet of Qwen3.5-9B and Qwen3.6-35B-A3B, or an eighth of it on a software adapter. */
function headsFor(software: boolean): NamedHeads {
  const part = software ? 8 : 1;
  return {
    name: software ? "qwen35-9b-eighth" : "qwen35-9b",
    keyHeads: 16 / part,
    valueHeads: 32 / part,
    keyDim: 128,
    valueDim: 128,
  };
}

const TAPS = 4;
/** The most rows of a round. */
const STEP_ROWS = 8;
/** Position of the first row. There is a state before it. */
const POSITION = 512;
const COUNTS = [1, 4, 8, 64, 512];

const widthOf = ({ keyHeads, valueHeads, keyDim, valueDim }: DeltaHeads) => ({
  mixed: 2 * keyHeads * keyDim + valueHeads * valueDim,
  values: valueHeads * valueDim,
});

/** `Row`s of slot 0. A run finds the state of the run before, which went equally far, so no steps are replayed. */
function rowsOf(from: Allocations, count: number) {
  const rows = Array.from({ length: count }, (_, i) => ({ position: POSITION + i }));
  return from.words(new Uint32Array(packRows(rows)));
}

/** The recurrence; with `convolved` together with the convolution before it, as in rounds. */
function deltaCase({ name, ...heads }: NamedHeads, count: number, convolved = false): MicroCase {
  return {
    name: `delta_rule/${name}/${convolved ? "convolved/" : ""}${count}`,
    make(from) {
      const { mixed, values } = widthOf(heads);
      const state = values * heads.keyDim;
      const [rows, decayWeights] = [rowsOf(from, count), from.random(2 * heads.valueHeads)];
      const xCols = convolved ? mixed + values : mixed;
      const ringRows = STEP_ROWS + TAPS - 1;
      return copiesOf(8 * state, from).map(() => [
        deltaRule({
          memory: {
            states: from.random(2 * state),
            checkpoints: true,
            steps: from.random(stepWords(heads, STEP_ROWS)),
            stepRows: STEP_ROWS,
          },
          rows,
          mixed: from.random(count * xCols),
          ...convolved && {
            conv: {
              weight: from.random(mixed * TAPS),
              ring: from.random(ringRows * mixed),
              xCols,
              ringRows,
            },
          },
          rates: from.random(count * 2 * heads.valueHeads),
          decayWeights,
          out: from.random(count * values),
        }, { heads, count, perSlot: count, label: name }),
      ]);
    },
  };
}

function normCase({ name, ...heads }: NamedHeads, count: number): MicroCase {
  return {
    name: `gated_norm/${name}/${count}`,
    make(from) {
      const { mixed, values: cols } = widthOf(heads);
      const { gpu: { info, limits } } = from;
      const [x, gate] = [from.random(count * cols), from.random(count * (mixed + cols))];
      const [weight, out] = [from.random(heads.valueDim), from.random(count * cols)];
      return [[
        gatedNorm({ x, gate, weight, out }, {
          rows: count,
          cols,
          headDim: heads.valueDim,
          eps: 1e-6,
          label: name,
          gate: { cols: mixed + cols, first: mixed },
          lanes: tuning(info.software, limits).rowLanes,
        }),
      ]];
    },
  };
}

function convCase({ name, ...heads }: NamedHeads, count: number): MicroCase {
  return {
    name: `short_conv/${name}/${count}`,
    make(from) {
      const { mixed: cols, values } = widthOf(heads);
      const [xCols, ringRows] = [cols + values, STEP_ROWS + TAPS - 1];
      const buffers = {
        x: from.random(count * xCols),
        weight: from.random(cols * TAPS),
        rows: rowsOf(from, count),
        ring: from.random(ringRows * cols),
        out: from.random(count * cols),
      };
      const shape = { form: "silu", cols, xCols, taps: TAPS, ringRows, count } as const;
      return [shortConv(buffers, { ...shape, label: name })];
    },
  };
}

/** Layers with a recurrent state. */
export function recurrentCases(software: boolean): MicroCase[] {
  const of = headsFor(software);
  const few = COUNTS.filter((count) => count <= STEP_ROWS);
  return [
    ...[deltaCase, normCase, convCase].flatMap((make) => COUNTS.map((count) => make(of, count))),
    ...few.map((count) => deltaCase(of, count, true)),
  ];
}
