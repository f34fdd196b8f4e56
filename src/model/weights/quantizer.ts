import { quantize } from "../../../kernels/matmul/quantize.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Plan } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import { type FloatFormat, GROUP } from "../../gpu/weight_format.ts";
import { compiler, submit } from "../../gpu/program.ts";
import type { Run } from "./shards.ts";

/** Quantizes float rows on the GPU and packs them into matrices, one full staging buffer at a time. */
export interface Quantizer extends Disposable {
  /** Holds the rows to be packed, one after the other from the start. */
  readonly staging: GPUBuffer;
  /** How many rows of `rowBytes` fit in the staging buffer; at least 1. */
  rows(rowBytes: number): number;
  /**
   * Packs the first rows of `staging` into the rows of `runs`, all in one shard, in their order.
   *
   * @param before a plan that runs first and fills `staging`, unless writes to it were queued.
   */
  pack(matrix: Matrix, runs: readonly Run[], from: FloatFormat, before?: Plan): void;
}

const STAGING_BYTES = 32 << 20;
/** Bytes of the narrowest rows: two groups of 16-bit floats. */
const ROW_BYTES = 2 * GROUP * 2;

/** Opens a quantizer; its buffers live until it is disposed of. */
export function openQuantizer(gpu: Gpu, stagingBytes: number = STAGING_BYTES): Quantizer {
  const { device } = gpu;
  const { prepare } = compiler(gpu);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
  const staging = device.createBuffer({ label: "quantizer.staging", size: stagingBytes, usage });
  const places = device.createBuffer({
    label: "quantizer.rows",
    size: stagingBytes / ROW_BYTES * 4,
    usage,
  });
  return {
    staging,
    rows: (rowBytes) => Math.max(1, Math.floor(stagingBytes / rowBytes)),
    pack(matrix, runs, from, before = []) {
      const shardRows = Uint32Array.from(runs.flatMap(rowsOf));
      device.queue.writeBuffer(places, 0, shardRows);
      const rows = { buffer: places, size: shardRows.byteLength };
      const shape = { shard: runs[0]?.shard ?? 0, rows: shardRows.length, from };
      submit(
        gpu,
        prepare([...before, quantize({ source: { buffer: staging }, rows }, matrix, shape)]),
      );
    },
    [Symbol.dispose]() {
      staging.destroy();
      places.destroy();
    },
  };
}

function rowsOf({ shardRow, rows }: Run): number[] {
  return Array.from({ length: rows }, (_, i) => shardRow + i);
}
