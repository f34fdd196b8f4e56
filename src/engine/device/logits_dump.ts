import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import { type Compiler, compiler, submit, within } from "../../gpu/program.ts";
import { readBuffer } from "../../gpu/readback.ts";
import type { AuxHidden } from "../../model/graph/target.ts";
import { bodyPlan, headPlan } from "../../model/lower/target_plans.ts";
import { chainRow, ROW_WORDS } from "../../model/device_layout.ts";
import { storageBuffer } from "./buffers.ts";
import type { Runner } from "./runner.ts";
import { type Sequence, slotOf } from "./sequence.ts";

/** Logits of this many rows at a time: eight rows of any width are 256-byte aligned. */
const HEAD_ROWS = 8;

/** Name of what enters layer `layer`; after the last one, of what the final norm returns. */
export function hidden(layer: number): string {
  return `hidden_states.${layer}`;
}

/**
 * The named tensors (`logits`, `hidden_states.N`) over all of `ids`, in prefill chunks. The sequence
 * has pages for them; what was stored there is gone.
 *
 * @param make one for several calls, so that they share pipelines.
 */
export async function forward(
  runner: Runner,
  sequence: Sequence,
  ids: readonly number[],
  names: readonly string[],
  make: Compiler = compiler(runner.gpu),
): Promise<Map<string, Float32Array>> {
  const { gpu, models: { promptTarget: target }, capacity } = runner;
  const { hiddenSize, vocabSize, layers: { length: numLayers } } = target.config;
  const rows = Math.min(capacity.prefillRows, Math.ceil(ids.length / HEAD_ROWS) * HEAD_ROWS);
  const auxHidden: (AuxHidden & { name: string })[] = Array.from(
    { length: numLayers },
    (_, layer) => layer,
  )
    .filter((layer) => names.includes(hidden(layer)))
    .map((layer) => ({
      name: hidden(layer),
      layer,
      out: storageBuffer(gpu, hidden(layer), rows * hiddenSize),
      outCols: hiddenSize,
      outFirst: 0,
    }));
  const rowBuffer = storageBuffer(gpu, "check.rows", rows * ROW_WORDS);
  const body = within(
    await make.compile(
      bodyPlan(target, { rows: rowBuffer, count: rows, perSlot: rows }, auxHidden),
    ),
    Infinity,
  );
  const out = new Map<string, Float32Array>();
  const put = (name: string, width: number, first: number, values: Float32Array) => {
    const whole = out.getOrInsertComputed(name, () => new Float32Array(ids.length * width));
    whole.set(
      values.subarray(0, Math.min(values.length, whole.length - first * width)),
      first * width,
    );
  };
  for (let first = 0; first < ids.length; first += rows) {
    gpu.device.queue.writeBuffer(rowBuffer.buffer, 0, rowWords(slotOf(sequence), ids, first, rows));
    submit(gpu, body);
    for (const { name, out: aux } of auxHidden) {
      put(name, hiddenSize, first, await floats(gpu, aux));
    }
    put(hidden(numLayers), hiddenSize, first, await floats(gpu, target.final));
    for (let row = 0; row < rows && first + row < ids.length; row += HEAD_ROWS) {
      const x = { buffer: target.final.buffer, offset: row * hiddenSize * 4 };
      submit(gpu, await make.compile(headPlan(target, HEAD_ROWS, x)));
      const padded = await floats(gpu, target.logits);
      put("logits", vocabSize, first + row, unpad(padded, target.weights.head.rows, vocabSize));
    }
  }
  return out;
}

function rowWords(slot: number, ids: readonly number[], first: number, rows: number) {
  const words = new Uint32Array(rows * ROW_WORDS);
  for (let row = 0; row < rows && first + row < ids.length; row++) {
    const cell = first + row;
    words.set(chainRow(ids[cell] ?? 0, slot, cell), row * ROW_WORDS);
  }
  return words;
}

async function floats(gpu: Gpu, source: Operand): Promise<Float32Array> {
  return new Float32Array(await readBuffer(gpu, source));
}

/** HEAD_ROWS rows of `stride`, without what is past `width`. */
function unpad(values: Float32Array, stride: number, width: number): Float32Array {
  if (stride === width) return values;
  const out = new Float32Array(HEAD_ROWS * width);
  for (let row = 0; row < HEAD_ROWS; row++) {
    out.set(values.subarray(row * stride, row * stride + width), row * width);
  }
  return out;
}
