import type { Gpu } from "../../../gpu/device.ts";
import { encode, type Program } from "../../../gpu/program.ts";
import { openReadback, type Readback } from "../../../gpu/readback.ts";
import { busyDevice, type BusyRuns } from "./busy.ts";
import { openStamps, passMs } from "./stamps.ts";
import { yieldToEventLoop } from "../event_loop.ts";

/** Groups of runs that may be unread: the device works on one while the host reads the other. */
export const IN_FLIGHT = 2;

/** Most rounds that are submitted without the host between them. */
export const MAX_ROUNDS = 32;

/** Programs that run in order, in one submission. */
export interface Submission {
  readonly programs: readonly Program[];
  /** Words of the result to read once they have run. */
  readonly words: number;
  /** What else to read then. */
  readonly extra?: { readonly buffer: GPUBuffer; readonly words: number };
  /** Whether it takes the device tens of milliseconds; default false. */
  readonly lasting?: boolean;
}

/** Runs that were submitted and are still to be read. */
export interface Submitted {
  read(): Promise<RunResult[]>;
}

/** Runs programs and reads one small buffer. */
export interface Submitter {
  /** Runs the work once. */
  run(work: Submission): Promise<RunResult>;
  /**
   * Runs the work `count` times, 1 to MAX_ROUNDS, without the host in between: each result has its
   * own place and all are read at once. Before it waits for the device, the host encodes what
   * the next call with the same (identical) work will submit, if its count is about the same.
   * At most IN_FLIGHT calls may be unread; they are read in their order.
   */
  repeat(work: Submission, count: number): Promise<Submitted>;
  /** Drops what was encoded ahead: a buffer was replaced. */
  forget(): void;
}

/** What one run of a submission read back. */
export interface RunResult {
  readonly words: Uint32Array;
  /** Empty where the work has none. */
  readonly extra: Uint32Array;
  /** Device time of each program; empty when not profiling. */
  readonly ms: readonly number[];
}

/**
 * Works whose command buffers are kept ready. Command buffers are single use and depend on the work alone, so those
 * that are not needed next are kept; the ones kept longest are dropped (Deno frees them unsubmitted).
 */
const MAX_READY = 8;

/**
 * Runs in one command buffer, whose results go to places `first` to `end` of the readback. Runs share one because, with
 * a small model, finishing a command buffer takes the host as long as a run takes the device.
 */
interface Encoded {
  readonly first: number;
  readonly end: number;
  readonly buffer: GPUCommandBuffer;
}

/**
 * Most runs in a command buffer. Dawn translates a command buffer into the driver's commands when it is submitted, 0.6
 * ms for a round of 260 dispatches, and the device begins only then: with Dawn each run is submitted alone.
 */
const MAX_RUNS = { builtin: 4, dawn: 1 };

/** Where a group's results are read from. */
interface Place {
  /** Words of the readback. */
  room: number;
  readback: Readback;
  /** For each work the command buffers of a group's first runs, without gaps. */
  readonly ready: Map<Submission, readonly Encoded[]>;
  /** Whether no unread group uses it. */
  isFree: boolean;
}

/** Words of a run's place in the readback: the result, then what else is read. */
function sizeOf({ words, extra }: Pick<Submission, "words" | "extra">): number {
  return Math.ceil((words + (extra?.words ?? 0)) / 2) * 2;
}

/** Words of the readback of as many runs as are submitted at once, without the times of a profile. */
export function readbackWords(work: Pick<Submission, "words" | "extra">): number {
  return MAX_ROUNDS * sizeOf(work);
}

/**
 * @param source the result, `words` long at most.
 * @param options.messageWaits see yieldToEventLoop.
 * @param options.meanwhile called after each submission, before the host waits for the device.
 * @param options.profile time each program with timestamp queries, where the adapter has them.
 */
export async function openSubmitter(
  gpu: Gpu,
  source: GPUBuffer,
  { words, profile, messageWaits, meanwhile = () => {} }: {
    readonly words: number;
    readonly profile: boolean;
    readonly messageWaits?: () => boolean;
    readonly meanwhile?: (() => void) | undefined;
  },
): Promise<Submitter> {
  const { device } = gpu;
  const most = MAX_RUNS[gpu.info.webgpu];
  const stamps = profile ? openStamps(gpu, MAX_ROUNDS) : undefined;
  /** Words for all runs of a group; behind their places are their times. */
  const roomFor = (work: Pick<Submission, "words" | "extra">) =>
    readbackWords(work) + MAX_ROUNDS * (stamps?.bytes ?? 0) / 4;
  const places: Place[] = [];
  for (let i = 0; i < IN_FLIGHT; i++) {
    const room = roomFor({ words });
    places.push({ room, readback: await openReadback(gpu, room), ready: new Map(), isFree: true });
  }
  const yieldNow = yieldToEventLoop(messageWaits);
  const submitted = busyDevice<Submission>();

  /** A place that no unread group uses, large enough for any number of runs of the work. */
  async function placeFor(work: Submission): Promise<Place> {
    const place = places.find(({ isFree }) => isFree);
    if (place === undefined) throw new Error(`${IN_FLIGHT} groups of runs are unread`);
    const wanted = roomFor(work);
    if (wanted > place.room) {
      place.ready.clear(); // they copy into the old one
      place.readback[Symbol.dispose]();
      place.room = wanted;
      place.readback = await openReadback(gpu, wanted);
    }
    return place;
  }

  /**
   * End of a command buffer that begins at run `first` and is submitted at once. It has as many runs as there are
   * before it, at most `most`, so that the device has work while the host encodes it.
   */
  function endOf(first: number): number {
    return first + Math.min(most, Math.max(1, first));
  }

  /**
   * The same for a command buffer that is encoded ahead for a group of `count` runs: groups of about the same size
   * begin with the same command buffers.
   */
  function endAhead(first: number, count: number): number {
    return count < most ? endOf(first) : first + most;
  }

  function record(place: Place, work: Submission, first: number, end: number): Encoded {
    const { readback } = place;
    const encoder = device.createCommandEncoder();
    for (let at = first; at < end; at++) recordRun(encoder, place, work, at);
    const passes = work.programs.filter(isRun).length;
    const to = { buffer: readback.buffer, offset: MAX_ROUNDS * sizeOf(work) * 4 };
    stamps?.copy(encoder, { first, end, passes }, to);
    return { first, end, buffer: encoder.finish() };
  }

  function recordRun(
    encoder: GPUCommandEncoder,
    { readback }: Place,
    work: Submission,
    at: number,
  ): void {
    const { words, extra } = work;
    const programs = work.programs.filter(isRun);
    // Unless each is timed, all programs share a pass.
    const passes = stamps ? programs.map((one) => [one]) : [programs];
    for (const [i, group] of passes.entries()) {
      const timestampWrites = stamps?.writes(at, i, passes.length);
      const pass = encoder.beginComputePass(timestampWrites ? { timestampWrites } : {});
      for (const program of group) encode(pass, program);
      pass.end();
    }
    const { buffer } = readback;
    const offset = at * sizeOf(work) * 4;
    encoder.copyBufferToBuffer(source, 0, buffer, offset, words * 4);
    if (extra) {
      encoder.copyBufferToBuffer(extra.buffer, 0, buffer, offset + words * 4, extra.words * 4);
    }
  }

  /** Submits a group: what is ready of it, then the rest. */
  function submitGroup(place: Place, work: Submission, count: number): void {
    const { ready } = place;
    const known = ready.get(work) ?? [];
    const over = known.findIndex(({ end }) => end > count);
    const taken = over < 0 ? known : known.slice(0, over);
    ready.set(work, known.slice(taken.length));
    const buffers = taken.map(({ buffer }) => buffer);
    // With Dawn, each buffer is submitted alone: the device begins only when all buffers of a submission are ready.
    const submissions = most === 1 ? buffers.map((buffer) => [buffer]) : [buffers];
    for (const each of submissions) if (each.length > 0) device.queue.submit(each);
    for (let first = taken.at(-1)?.end ?? 0; first < count; first = endOf(first)) {
      const { buffer } = record(place, work, first, Math.min(count, endOf(first)));
      device.queue.submit([buffer]);
    }
  }

  /** Encodes the first runs of the next group, if it has as many runs, and keeps the buffers that this one left. */
  function keepReady(place: Place, work: Submission, count: number): void {
    const { ready } = place;
    const left = ready.get(work) ?? [];
    ready.delete(work);
    const [longest] = ready.keys();
    if (longest && ready.size >= MAX_READY) ready.delete(longest);
    const made: Encoded[] = [];
    const until = Math.min(count, left[0]?.first ?? Infinity);
    for (let first = 0; first < until; first = endAhead(first, count)) {
      const end = endAhead(first, count);
      if (end <= until) made.push(record(place, work, first, end));
    }
    ready.set(work, [...made, ...left]);
  }

  async function read(
    { readback }: Place,
    work: Submission,
    count: number,
    busy: BusyRuns,
  ): Promise<RunResult[]> {
    const { programs, words, extra, lasting } = work;
    const size = sizeOf(work);
    const wait = { lasting, ...busy.wait() };
    const all = await readback.read(stamps ? roomFor(work) : count * size, wait)
      .finally(() => busy.seen());
    const passes = programs.filter(isRun).length;
    return Array.from({ length: count }, (_, at) => {
      const own = all.subarray(at * size, (at + 1) * size);
      const times = all.subarray(MAX_ROUNDS * size + 4 * at * passes);
      const ms = stamps ? msOf(programs, times) : [];
      const more = own.subarray(words, words + (extra?.words ?? 0));
      return { words: own.subarray(0, words), extra: more, ms };
    });
  }

  return {
    async run(work) {
      const place = await placeFor(work);
      const { buffer } = record(place, work, 0, 1);
      const busy = submitted(work, 1);
      device.queue.submit([buffer]);
      meanwhile();
      await yieldNow();
      return (await read(place, work, 1, busy))[0] as RunResult;
    },
    async repeat(work, count) {
      const place = await placeFor(work);
      place.isFree = false;
      const busy = submitted(work, count); // the device begins with the first run before the last is submitted
      submitGroup(place, work, count);
      return {
        async read() {
          keepReady(place, work, count);
          meanwhile();
          await yieldNow();
          try {
            return await read(place, work, count, busy);
          } finally {
            place.isFree = true;
          }
        },
      };
    },
    forget() {
      for (const { ready } of places) ready.clear();
    },
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
