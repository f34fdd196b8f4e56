/** What a decoder's graphs and their lowering need to know of the model, the device and the engine. */
import type { RowScales } from "../../../kernels/norm/rms_norm.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import type { Tuning } from "../../gpu/matrix.ts";
import type { ModelConfig } from "../config/types.ts";
import type { ScratchPool } from "../../gpu/scratch_pool.ts";

/** What all layers of a model share. */
export interface DecoderContext {
  readonly config: ModelConfig;
  readonly tuning: Tuning;
  /** Tables of each of the config's ropes: cos and sin, [positions, headDim / 2, 2]. */
  readonly ropes: readonly Operand[];
  /** Block table, [slots, tablePages]. */
  readonly pages: Operand;
  readonly tablePages: number;
  readonly kvDtype: KvDtype;
  /** Rows of the widest forward: partial sums of attention have room for as many. */
  readonly widestRows: number;
  /** Rewrites that are not applied, by name; "all" names all of them. Default: none. */
  readonly without?: ReadonlySet<string> | undefined;
  /** Where values are stored that only their graph reads. */
  readonly scratch: ScratchPool;
  /** Where the device has matrix units: scales of the rows that matmuls read. */
  readonly scales?: RowScales | undefined;
  /** Where matmuls of one row may go together in a dispatch. */
  readonly relay?: RelayBuffers | undefined;
}

/**
 * What workgroups of a dispatch wait for, of one row; see kernels/matmul/relay. Zeros before and after each dispatch.
 */
export interface RelayBuffers {
  /** u32 [relayWords(intermediate)] */
  readonly act: Operand;
  /** u32 [headWords(width of q, k and v)] and [sumWords(hidden)]. */
  readonly heads: Operand;
}
