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
  /** What else to read then. */
  readonly extra?: { readonly buffer: GPUBuffer; readonly words: number };
}

/** Runs programs and reads one small buffer. */
export interface Submitter {
  /** Runs the work once. */
  run(work: Work): Promise<Ran>;
  /**
   * Runs the work `count` times, 1 to MOST_ROUNDS, without the host between: each result goes to a
   * place of its own and all are read at once. While the device works, the host encodes what the
   * next call with the same (identical) work and count will submit.
   */
  repeat(work: Work, count: number): Promise<Ran[]>;
  /** Drops what was encoded ahead: a buffer was replaced. */
  forget(): void;
}

/** What one run left. */
export interface Ran {
  readonly words: Uint32Array;
  /** Empty where the work has none. */
  readonly extra: Uint32Array;
  /** Device time of each program; empty when not profiling. */
  readonly ms: readonly number[];
}

/**
 * Works whose command buffers are kept ready. They are single use and depend on the work alone, so those whose
 * turn does not come next wait; what waited longest gives way (Deno frees it unsubmitted).
 */
const MOST_READY = 8;

/** Runs in one command buffer: of a small model, finishing one takes the host as long as a run the device. */
interface Encoded {
  readonly runs: number;
  readonly buffer: GPUCommandBuffer;
}

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
  /** Where the parts of a run's place begin and it ends, in words: the result, what else, the times. */
  const layout = ({ words, extra }: Pick<Work, "words" | "extra">) => {
    const times = Math.ceil((words + (extra?.words ?? 0)) / 2) * 2;
    return { times, size: times + (stamps?.bytes ?? 0) / 4 };
  };
  let room = MOST_ROUNDS * layout({ words }).size;
  let readback = await openReadback(gpu, room);
  /** Of each work its first run, and the further ones of a group. */
  const ready = new Map<Work, readonly Encoded[]>();
  const yieldNow = yieldToEventLoop(mail);

  /** Makes the readback large enough for any number of runs of the work. */
  async function fit(work: Work): Promise<void> {
    const wanted = MOST_ROUNDS * layout(work).size;
    if (wanted <= room) return;
    ready.clear(); // they copy into the old one
    readback[Symbol.dispose]();
    room = wanted;
    readback = await openReadback(gpu, room);
  }

  /** Runs whose results go to places `first`, `first` + 1, ... of the readback. */
  function record(work: Work, first: number, runs: number): Encoded {
    const encoder = device.createCommandEncoder();
    for (let at = first; at < first + runs; at++) recordRun(encoder, work, at);
    return { runs, buffer: encoder.finish() };
  }

  function recordRun(encoder: GPUCommandEncoder, work: Work, at: number): void {
    const { words, extra } = work;
    const programs = work.programs.filter(isRun);
    // Unless each is timed, all programs share a pass.
    for (const [i, group] of (stamps ? programs.map((one) => [one]) : [programs]).entries()) {
      const timestampWrites = stamps?.writes(at, i);
      const pass = encoder.beginComputePass(timestampWrites ? { timestampWrites } : {});
      for (const program of group) encode(pass, program);
      pass.end();
    }
    const { times, size } = layout(work);
    const { buffer } = readback;
    const offset = at * size * 4;
    encoder.copyBufferToBuffer(source, 0, buffer, offset, words * 4);
    if (extra) {
      encoder.copyBufferToBuffer(extra.buffer, 0, buffer, offset + words * 4, extra.words * 4);
    }
    const to = { buffer, offset: offset + times * 4 };
    stamps?.copy(encoder, { region: at, count: programs.length }, to);
  }

  /** Submits a group: what is ready of it, then parts as long as all before, so that the device has work meanwhile. */
  function submitGroup(work: Work, count: number): void {
    const [first, rest] = ready.get(work) ?? [];
    ready.delete(work);
    const known = [...first ? [first] : [], ...rest && rest.runs === count - 1 ? [rest] : []];
    if (first) device.queue.submit(known.map(({ buffer }) => buffer));
    let at = known.reduce((sum, { runs }) => sum + runs, 0);
    while (at < count) {
      const part = record(work, at, Math.min(count - at, Math.max(1, at)));
      device.queue.submit([part.buffer]);
      at += part.runs;
    }
  }

  function keepReady(work: Work, count: number): void {
    const [longest] = ready.keys();
    if (longest && ready.size >= MOST_READY) ready.delete(longest);
    const rest = count > 1 ? [record(work, 1, count - 1)] : [];
    ready.set(work, [record(work, 0, 1), ...rest]);
  }

  async function read(work: Work, count: number): Promise<Ran[]> {
    const { programs, words, extra } = work;
    const { times, size } = layout(work);
    const all = await readback.read(count * size);
    return Array.from({ length: count }, (_, at) => {
      const own = all.subarray(at * size, (at + 1) * size);
      const ms = stamps ? msOf(programs, own.subarray(times)) : [];
      const more = own.subarray(words, words + (extra?.words ?? 0));
      return { words: own.subarray(0, words), extra: more, ms };
    });
  }

  return {
    async run(work) {
      await fit(work);
      device.queue.submit([record(work, 0, 1).buffer]);
      meanwhile();
      await yieldNow();
      return (await read(work, 1))[0] as Ran;
    },
    async repeat(work, count) {
      await fit(work);
      submitGroup(work, count);
      keepReady(work, count);
      meanwhile();
      await yieldNow();
      return await read(work, count);
    },
    forget: () => ready.clear(),
  };
}

/** Whether there is anything to run; a pass without it would still take its time. */
function isRun({ steps }: Program): boolean {
  return steps.length > 0;
}

/** Milliseconds of each program from the stamps of those that run. */
function msOf(programs: readonly Program[], stamps: Uint32Array): number[] {
  const ran = passMs(stamps, programs.filter(isRun).length);
  let at = 0;
  return programs.map((program) => isRun(program) ? ran[at++] ?? 0 : 0);
}
