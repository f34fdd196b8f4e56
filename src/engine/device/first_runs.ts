/** Runs kernels for the first time, one by one: that is where an adapter may compile them. */
import type { Program, Step } from "../../gpu/program.ts";
import type { Submitter } from "./submit/submit.ts";

/** Kernels that have run and those that are known to run next. */
export interface CompileProgress {
  readonly done: number;
  readonly total: number;
}

/**
 * Pipelines that have run in any engine: engines on one device may share pipelines, and an adapter compiles each once.
 */
const RAN = new WeakSet<GPUComputePipeline>();

/** Which pipelines of an engine have run, and the time that their first runs took. */
export interface FirstRuns {
  /** Milliseconds so far, of the runs below. */
  readonly ms: number;
  /** Pipelines of these programs that have not run. */
  missing(programs: readonly Program[]): number;
  /**
   * Runs the programs once if one of their pipelines has not run. They must write nothing that is needed later, so
   * their inputs name no lane.
   */
  run(
    programs: readonly Program[],
    onProgress: (progress: CompileProgress) => void,
  ): Promise<void>;
}

export function firstRuns(submitter: Pick<Submitter, "run" | "forget">): FirstRuns {
  /** Pipelines that ran first for this engine. */
  let done = 0;
  let ms = 0;

  function missing(programs: readonly Program[]): Set<GPUComputePipeline> {
    const all = programs.flatMap(({ steps }) => steps.map(({ pipeline }) => pipeline));
    return new Set(all.filter((pipeline) => !RAN.has(pipeline)));
  }

  return {
    get ms() {
      return ms;
    },
    missing: (programs) => missing(programs).size,
    async run(programs, onProgress) {
      const total = done + missing(programs).size;
      if (total === done) return;
      const began = performance.now();
      onProgress({ done, total });
      for (const steps of segments(programs.flatMap(({ steps }) => steps))) {
        await submitter.run({ programs: [{ steps }], words: 0 });
        done++;
        onProgress({ done, total });
      }
      // None of these parts runs again, so nothing that was encoded ahead is needed.
      submitter.forget();
      ms += performance.now() - began;
    },
  };
}

/**
 * Splits the steps, in order, into parts that each end with a step whose pipeline has not run; the pipeline then counts
 * as run. Steps after the last part are left out.
 */
function* segments(steps: readonly Step[]): Generator<Step[]> {
  let part: Step[] = [];
  for (const step of steps) {
    part.push(step);
    if (RAN.has(step.pipeline)) continue;
    RAN.add(step.pipeline);
    yield part;
    part = [];
  }
}
