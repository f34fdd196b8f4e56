/** What a decoder's graphs and their lowering need to know about the model, the device and the engine. */
import type { RowScales } from "../../../kernels/norm/rms_norm.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import type { Tuning } from "../../gpu/tuning.ts";
import type { ModelConfig } from "../config/types.ts";
import type { ScratchPool } from "../../gpu/scratch_pool.ts";

/** What all layers of a model share. */
export interface DecoderContext {
  readonly config: ModelConfig;
  readonly tuning: Tuning;
  /** One table of cos and sin, [positions, headDim / 2, 2], for each of the config's ropes. */
  readonly ropes: readonly Operand[];
  /** Block table, [slots, tablePages]. */
  readonly pages: Operand;
  readonly tablePages: number;
  readonly kvDtype: KvDtype;
  /** Rows of the widest forward; buffers for partial sums of attention are made for this many. */
  readonly widestRows: number;
  /** Rewrites that are not applied, by name; "all" names all of them. Default: none. */
  readonly without?: ReadonlySet<string> | undefined;
  /** Stores the values that only their graph reads. */
  readonly scratch: ScratchPool;
  /** Scales of the rows that matmuls read; present where the device has matrix units. */
  readonly scales?: RowScales | undefined;
  /** Present where matmuls of one row may share a dispatch. */
  readonly handoff?: HandoffBuffers | undefined;
}

/**
 * Words through which workgroups of one dispatch pass numbers of a row to workgroups that wait for them; see
 * kernels/matmul/handoff. All words are 0 before and after each dispatch.
 */
export interface HandoffBuffers {
  /** u32 [handoffWords(intermediate)] */
  readonly act: Operand;
  /** u32 [headWords(width of q, k and v)] and [sumWords(hidden)]. */
  readonly heads: Operand;
}
