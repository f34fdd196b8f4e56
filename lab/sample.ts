import type { Profiler } from "../src/gpu/profile.ts";
import type { Program } from "../src/gpu/program.ts";

/** Milliseconds of one run by timestamps. One submission has `runs` runs, for which the programs take turns. */
export async function sampleMs(
  profiler: Profiler,
  programs: readonly Program[],
  runs: number,
): Promise<number> {
  const turns = Array.from({ length: runs }, (_, i) => programs[i % programs.length]?.steps ?? []);
  return ((await profiler.time([{ steps: turns.flat() }]))[0]?.end ?? NaN) / runs;
}
