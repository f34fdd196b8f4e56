/** States of prefixes: copies of what recurrent layers had of a slot after a whole page of its tokens. */
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import { readBuffer } from "../../gpu/readback.ts";
import { from } from "../../../kernels/lib/row_blocks.ts";
import { headerWords } from "../../../kernels/recurrent/delta_rule.ts";
import type { DeltaNet, LayerConfig } from "../../model/config/layer_config.ts";
import type { LayerKv } from "../../model/graph/graph.ts";
import { PAGE, SLOT_WORDS } from "../../model/device_layout.ts";
import { type EngineSizes, maxRows, type RoundBuffers, storageBuffer } from "./buffers.ts";
import { type Sequence, slotOf } from "./sequence.ts";

/**
 * A prompt's state is kept after every so many tokens, so that prompts with the same prefix store only what follows it.
 * Every forward of prompts has as many rows or a part of them, 1,024 at most (`LONG_PREFILL_ROWS`). A state is as large
 * as keys and values of 1,600 to 3,200 tokens in f16: Qwen3.5-9B 50 MB beside 32 KB a token, Qwen3.6-27B 151 MB beside
 * 64 KB, Qwen3.6-35B-A3B 63 MB beside 20 KB. Kept more often, states would take more memory than the keys and values
 * that they belong to.
 */
const STATE_TOKENS = 2048;

/** States of one prompt that are kept at most, besides that at its end. */
const PROMPT_STATES = 8;

/**
 * Tokens between two states of a prompt of `tokens` tokens. A longer prompt's spacing is a multiple of a shorter one's.
 */
export function stateSpacing(tokens: number): number {
  let spacing = STATE_TOKENS;
  while (tokens > PROMPT_STATES * spacing) spacing *= 2;
  return spacing;
}

/** States that one prompt of a context of so many tokens has before its end. */
export function promptStates(contextLength: number): number {
  return Math.min(PROMPT_STATES, Math.floor((contextLength - 1) / STATE_TOKENS));
}

/** Places for states, 0 to `count` - 1. Windows at the end of prefixes have places too: see window_pages.ts. */
export interface KeptStates {
  readonly count: number;
  /**
   * Whether there are places for states within long prompts too (`stateSpacing`), not only where requests part or end.
   */
  readonly spaced: boolean;
  /** Settles when every save in progress is done; undefined if there is none. Never rejects. */
  readonly saving: Promise<unknown> | undefined;
  /**
   * Whether there may be a checkpoint of the sequence, of which the device has stored `beyond` tokens more than belong
   * to its text: the text ended within a group of rounds.
   */
  mayHave(sequence: Sequence, beyond: number): boolean;
  /**
   * Keeps the sequence's last checkpoint at a place.
   *
   * @param promptTokens tokens stored of a prompt that has not ended: the slot has no length yet.
   * @returns how many of its tokens the state follows, a multiple of PAGE; 0: there was no checkpoint.
   */
  save(sequence: Sequence, place: number, promptTokens?: number): Promise<number> | number;
  /** Copies the state at a place, which follows `length` tokens, into the sequence's slot. */
  load(sequence: Sequence, place: number, length: number): void;
}

/** A part of a layer's state, which each slot has once. */
interface Part {
  /** Where slot 0's checkpoint begins, and where slot 0's current state does. */
  readonly checkpoint: Operand;
  readonly current: Operand;
  /** Bytes of a slot, a multiple of 4. */
  readonly bytes: number;
  readonly kept: GPUBuffer;
}

/** Undefined where `capacity` has no places, or no layer a state. */
export function keptStates(
  gpu: Gpu,
  { layers, kv }: { readonly layers: readonly LayerConfig[]; readonly kv: readonly LayerKv[] },
  capacity: Pick<EngineSizes, "batch" | "keptStates" | "shapes">,
  { slots }: Pick<RoundBuffers, "slots">,
): KeptStates | undefined {
  const parts: Part[] = [];
  const headers: { readonly steps: Operand; readonly bytes: number; readonly words: number }[] = [];
  const { batch, keptStates: count = 0 } = capacity;
  if (count === 0) return undefined;
  const part = (checkpoint: Operand, current: Operand, bytes: number) => {
    const { buffer: kept } = storageBuffer(gpu, `kv.kept.${parts.length}`, count * bytes / 4);
    parts.push({ checkpoint, current, bytes, kept });
  };
  for (const [i, { state }] of kv.entries()) {
    if (state === undefined) continue;
    const { ring, delta } = state;
    part(ring, ring, sizeOf(ring) / batch);
    if (delta === undefined) continue;
    const half = sizeOf(delta.states) / 2;
    part(from(delta.states, half), delta.states, half / batch);
    const words = headerWords(layers[i]?.attention as DeltaNet);
    headers.push({ steps: delta.steps, bytes: sizeOf(delta.steps) / batch, words });
  }
  if (parts.length === 0) return undefined;
  const [header] = headers;
  // A ring has rows of more than a page behind the slot's length, which is of words: see `Slot`.
  const [{ buffer: lengths, offset: lengthsAt = 0 }, lengthStride] = header
    ? [header.steps, header.bytes]
    : [slots, 4 * SLOT_WORDS];
  const read = storageBuffer(gpu, "kv.kept.header", 4 * count);
  const copy = (record: (encoder: GPUCommandEncoder) => void) => {
    const encoder = gpu.device.createCommandEncoder();
    record(encoder);
    gpu.device.queue.submit([encoder.finish()]);
  };
  async function copyOut(
    sequence: Sequence,
    place: number,
    promptTokens: number | undefined,
  ): Promise<number> {
    const slot = slotOf(sequence);
    copy((encoder) => {
      // The length is copied together with the states: further rounds may be submitted before it is read.
      const at = lengthsAt + slot * lengthStride;
      encoder.copyBufferToBuffer(lengths, at, read.buffer, 16 * place, 16);
      for (const { checkpoint: { buffer, offset = 0 }, bytes, kept } of parts) {
        encoder.copyBufferToBuffer(buffer, offset + slot * bytes, kept, place * bytes, bytes);
      }
    });
    const words = await readBuffer(gpu, { buffer: read.buffer, offset: 16 * place, size: 16 });
    if (header) return new Float32Array(words)[1] ?? 0;
    // The same prompt is found up to its last token, which is computed again.
    const length = promptTokens ?? Math.max(0, (new Uint32Array(words)[0] ?? 0) - 1);
    return length - length % PAGE;
  }

  let saving: Promise<unknown> | undefined;
  return {
    count,
    spaced: true,
    get saving() {
      return saving;
    },
    mayHave({ stored }, beyond) {
      // The checkpoint is at the end of a page, this far at least.
      const min = stored + beyond - maxRows(capacity);
      return min - min % PAGE <= stored;
    },
    save(sequence, place, promptTokens) {
      const saved = copyOut(sequence, place, promptTokens);
      const all: Promise<void> = Promise.allSettled([saving, saved]).then(() => {
        if (saving === all) saving = undefined;
      });
      saving = all;
      return saved;
    },
    load(sequence, place, length) {
      const slot = slotOf(sequence);
      copy((encoder) => {
        for (const { checkpoint, current, bytes, kept } of parts) {
          for (const { buffer, offset = 0 } of new Set([checkpoint, current])) {
            encoder.copyBufferToBuffer(kept, place * bytes, buffer, offset + slot * bytes, bytes);
          }
        }
      });
      for (const { steps: { buffer, offset = 0 }, bytes, words } of headers) {
        const all = Float32Array.from({ length: words }, (_, i) => i % 4 < 2 ? length : 0);
        gpu.device.queue.writeBuffer(buffer, offset + slot * bytes, all);
      }
    },
  };
}

function sizeOf({ buffer, offset = 0, size = buffer.size - offset }: Operand): number {
  return size;
}
