import { UsageError } from "../errors.ts";
import type { Gpu } from "./device.ts";
import { encode, type Program } from "./program.ts";
import { openReadback } from "./readback.ts";

/** When a pass began and ended on the device, milliseconds from the first one's begin. */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** Times programs on the device. */
export interface Profiler extends Disposable {
  /**
   * Runs the programs in order, each in a compute pass of its own between two timestamps. Such
   * passes do not overlap, which dispatches of one pass may.
   */
  time(programs: readonly Program[]): Promise<Span[]>;
}

/** Most queries that WebGPU allows in one set. */
const MOST_QUERIES = 4096;

/**
 * Opens a profiler; more programs than a query set holds become several submissions.
 *
 * @throws UsageError where the adapter has no timestamp queries.
 */
export async function openProfiler(
  gpu: Gpu,
  { queries = MOST_QUERIES }: { readonly queries?: number } = {},
): Promise<Profiler> {
  const { device, info } = gpu;
  if (!info.features.includes("timestamp-query")) {
    throw new UsageError(`Cannot profile "${info.adapter}": it has no timestamp queries`);
  }
  using stack = new DisposableStack();
  const size = queries * 8;
  const querySet = stack.adopt(
    device.createQuerySet({ type: "timestamp", count: queries }),
    (made) => made.destroy(),
  );
  const resolved = stack.adopt(
    device.createBuffer({
      label: "timestamps",
      size,
      usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
    }),
    (made) => made.destroy(),
  );
  const readback = stack.use(await openReadback(gpu, size / 4));

  /** Nanoseconds, two a program. */
  async function stamps(programs: readonly Program[]): Promise<BigUint64Array> {
    const encoder = device.createCommandEncoder();
    for (const [i, program] of programs.entries()) {
      const pass = encoder.beginComputePass({
        timestampWrites: {
          querySet,
          beginningOfPassWriteIndex: 2 * i,
          endOfPassWriteIndex: 2 * i + 1,
        },
      });
      encode(pass, program);
      pass.end();
    }
    encoder.resolveQuerySet(querySet, 0, 2 * programs.length, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, readback.buffer, 0, programs.length * 16);
    device.queue.submit([encoder.finish()]);
    return new BigUint64Array((await readback.read()).buffer, 0, 2 * programs.length);
  }

  const owned = stack.move();
  return {
    async time(programs) {
      const times: bigint[] = [];
      for (let from = 0; from < programs.length; from += queries / 2) {
        times.push(...await stamps(programs.slice(from, from + queries / 2)));
      }
      const ms = times.map((time) => Number(time - (times[0] ?? 0n)) / 1e6);
      return programs.map((_, i) => ({ begin: ms[2 * i] ?? 0, end: ms[2 * i + 1] ?? 0 }));
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** A program for each dispatch. */
export function apart({ steps }: Program): Program[] {
  return steps.map((step) => ({ steps: [step] }));
}
