import type { Gpu } from "../../gpu/device.ts";
import { encode, type Program } from "../../gpu/program.ts";
import { openReadback } from "../../gpu/readback.ts";
import { openStamps, passMs } from "./stamps.ts";
import { yieldToEventLoop } from "./event_loop.ts";

/** Most rounds that are submitted without the host between them. */
export const MOST_ROUNDS = 8;

/** Programs that run in order, in one submission. */
export interface Work {
  readonly programs: readonly Program[];
  /** Words of the result to read once they have run. */
  readonly words: number;
}

/** Runs programs and reads one small buffer. */
export interface Submitter {
  /** Runs the work once. */
  run(work: Work): Promise<Ran>;
  /**
   * Runs the work `count` times, 1 to MOST_ROUNDS, without the host between: each result goes to a
   * place of its own and all are read at once. While the device works, the host encodes what the
   * next call with the same (identical) work will submit first.
   */
  repeat(work: Work, count: number): Promise<Ran[]>;
}

/** What one run left. */
export interface Ran {
  readonly words: Uint32Array;
  /** Device time of each program; empty when not profiling. */
  readonly ms: readonly number[];
}

/**
 * Command buffers kept ready. They are single use and depend on the work alone, so one whose turn
 * does not come next waits; the one that waited longest gives way (Deno frees it unsubmitted).
 */
const MOST_READY = 8;

/**
 * @param source the result, `words` long at most.
 * @param options.mail see yieldToEventLoop.
 * @param options.meanwhile called after each submission, before the host waits for the device.
 * @param options.profile time each program with timestamp queries, where the adapter has them.
 */
export async function openSubmitter(
  gpu: Gpu,
  source: GPUBuffer,
  { words, profile, mail, meanwhile = () => {} }: {
    readonly words: number;
    readonly profile: boolean;
    readonly mail?: () => boolean;
    readonly meanwhile?: (() => void) | undefined;
  },
): Promise<Submitter> {
  const { device } = gpu;
  const stamps = profile ? openStamps(gpu, MOST_ROUNDS) : undefined;
  const stride = words * 4 + (stamps?.bytes ?? 0);
  const readback = await openReadback(gpu, MOST_ROUNDS * stride / 4);
  const ready = new Map<Work, GPUCommandBuffer>();
  const yieldNow = yieldToEventLoop(mail);

  /** One run whose result goes to place `at` of the readback. */
  function record({ programs, words: size }: Work, at: number): GPUCommandBuffer {
    const encoder = device.createCommandEncoder();
    // Unless each is timed, all programs share a pass.
    for (const [i, group] of (stamps ? programs.map((one) => [one]) : [programs]).entries()) {
      const timestampWrites = stamps?.writes(at, i);
      const pass = encoder.beginComputePass(timestampWrites ? { timestampWrites } : {});
      for (const program of group) encode(pass, program);
      pass.end();
    }
    const offset = at * stride;
    encoder.copyBufferToBuffer(source, 0, readback.buffer, offset, size * 4);
    const to = { buffer: readback.buffer, offset: offset + words * 4 };
    stamps?.copy(encoder, { region: at, count: programs.length }, to);
    return encoder.finish();
  }

  function keepReady(work: Work): void {
    const [longest] = ready.keys();
    if (longest && ready.size >= MOST_READY) ready.delete(longest);
    ready.set(work, record(work, 0));
  }

  async function read({ programs, words: size }: Work, count: number): Promise<Ran[]> {
    const all = await readback.read(count * stride / 4);
    return Array.from({ length: count }, (_, at) => {
      const own = all.subarray(at * stride / 4, (at + 1) * stride / 4);
      const ms = stamps ? passMs(own.subarray(words), programs.length) : [];
      return { words: own.subarray(0, size), ms };
    });
  }

  return {
    async run(work) {
      device.queue.submit([record(work, 0)]);
      meanwhile();
      await yieldNow();
      return (await read(work, 1))[0] as Ran;
    },
    async repeat(work, count) {
      device.queue.submit([ready.get(work) ?? record(work, 0)]);
      ready.delete(work);
      // A submission each: the device begins the first while the others are encoded.
      for (let at = 1; at < count; at++) device.queue.submit([record(work, at)]);
      keepReady(work);
      meanwhile();
      await yieldNow();
      return await read(work, count);
    },
  };
}
