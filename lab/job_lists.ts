import { type Jobs, listWords } from "../kernels/experts/job_lists.ts";

/** Marks an empty place for a job: see job_lists.wgsl. */
const NOTHING = 0xffffffff;

/** The job lists that job_lists.wgsl writes for these experts: `topK` for each row. */
export function jobLists(
  experts: readonly number[],
  { tile, ...jobs }: Jobs & { readonly tile: number },
): Uint32Array<ArrayBuffer> {
  const tiles = Array.from({ length: jobs.numExperts }, (_, e) => {
    const own = [...experts.entries()].flatMap(([job, expert]) => expert === e ? [job] : []);
    return Array.from({ length: Math.ceil(own.length / tile) }, (_, t) => [
      e,
      ...Array.from({ length: tile }, (_, r) => own[t * tile + r] ?? NOTHING),
    ]).flat();
  }).flat();
  const words = new Uint32Array(listWords(jobs, tile)).fill(NOTHING);
  words.set(tiles);
  return words;
}
