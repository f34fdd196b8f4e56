import { type Gpu, largestBinding } from "../../../gpu/device.ts";
import type { ElasticBuffers } from "../models.ts";
import { type LeavingBuffers, leavingBuffers } from "./leaving_buffers.ts";
import { type PagedBuffers, pagedBuffers } from "./paged_buffers.ts";

/** A draft's memory, which KV pages may use while nothing is drafted. */
export interface ElasticMemory {
  /** The draft is not on the GPU, or not all of it: rounds and prompts run without it. */
  away: boolean;
  readonly paged: PagedBuffers;
  readonly draft: LeavingBuffers;
  /** KV pages while the draft is on the GPU. */
  readonly fewest: number;
  /** KV pages that the memory of both holds: as many bytes a page as the target's layers and features take. */
  readonly most: number;
}

/**
 * @param at.pages that there are now.
 * @param at.replace see Compiler; what was encoded before must not run any more.
 */
export function elasticMemory(
  gpu: Gpu,
  { paged: buffers, weights: kept, kv: dropped }: ElasticBuffers,
  { pages, replace }: {
    readonly pages: number;
    readonly replace: (from: GPUBuffer, to: GPUBuffer | undefined) => void;
  },
): ElasticMemory {
  const paged = pagedBuffers(gpu, buffers, { pages, replace });
  const draft = leavingBuffers(gpu, { kept, dropped }, replace);
  const limit = largestBinding(gpu.limits);
  const bound = Math.min(...buffers.map(({ size }) => Math.floor(limit / (size / pages))));
  // Where all layers have windows, and no features are kept, pages hold nothing.
  const more = paged.pageBytes === 0 ? 0 : Math.floor(draft.bytes / paged.pageBytes);
  const held = pages + more;
  return { away: false, paged, draft, fewest: pages, most: Math.max(pages, Math.min(bound, held)) };
}
