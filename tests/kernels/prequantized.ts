// What quantized checkpoints hold, in plain numbers.

import type { Matrix } from "../../src/gpu/matrix.ts";
import { isFp4, lanesFor, type Prequantized } from "../../src/gpu/weight_format.ts";
import { toLanes } from "../../src/model/checkpoint/quantized/lane_order.ts";
import { rowWords } from "../../src/model/checkpoint/quantized/modules.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import type { Device } from "../gpu/device.ts";
import { e4m3 } from "../model/quantized/e4m3.ts";
import { uploadMatrix } from "./matrices.ts";

/** Source: OCP Microscaling Formats (MX) 1.0, 5.3.3. */
const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];

/** What the stored integer `u` stands for, before its scale. */
const VALUE: Readonly<Record<Prequantized, (u: number, zero: number) => number>> = {
  u4: (u, zero) => u - zero,
  i8: (u) => u - 128,
  f8: (u) => e4m3(u),
  mxfp4: (u) => E2M1[u] ?? NaN,
  nvfp4: (u) => E2M1[u] ?? NaN,
};

/** Random rows as ReadRows fills them, and their numbers. */
function randomRows(format: Prequantized, n: number, cols: number) {
  const { weights, all } = rowWords({ format, cols });
  const rows = new Uint32Array(n * all);
  const values = new Float32Array(n * cols);
  const bits = format === "u4" || isFp4(format) ? 4 : 8;
  const scale = new Float32Array(1);
  const scaleBits = new Uint32Array(scale.buffer);
  for (let row = 0; row < n; row++) {
    for (let k = 0; k < cols; k++) {
      const group = row * all + weights + Math.floor(k / 32);
      const zero = format === "u4" ? (row + Math.floor(k / 32)) % 17 : 0;
      // All 23 bits of i8's and f8's scales are used, 19 of u4's.
      scale[0] = 0.01 + hash32(5, row, Math.floor(k / 32)) / 2 ** 36;
      if (format === "mxfp4") scale[0] = 2 ** (-8 + hash32(5, row, Math.floor(k / 32)) % 7);
      if (format === "u4") scaleBits[0] = (scaleBits[0] ?? 0) & ~31;
      rows[group] = ((scaleBits[0] ?? 0) | zero) >>> 0;
      if (format === "nvfp4") {
        // f16 over 2^-12, of each half of a group.
        const pair = Float16Array.from([0, 1], (i) => 40 + 20 * i + hash32(5, row, k >> 5) % 999);
        rows[group] = new Uint32Array(pair.buffer)[0] ?? 0;
        scale[0] = (pair[k >> 4 & 1] ?? NaN) * 2 ** -12;
      }
      let u = hash32(6, row, k) >>> 32 - bits;
      if (format === "f8" && (u & 127) === 127) u = 3; // that is no number
      const word = row * all + Math.floor(k * bits / 32);
      rows[word] = ((rows[word] ?? 0) | u << k * bits % 32) >>> 0;
      values[row * cols + k] = VALUE[format](u, zero) * (scale[0] ?? 0);
    }
  }
  return { rows, values };
}

/** A random matrix as checkpoints hold it, and the same numbers as f32. */
export function uploadPrequantized(
  device: Device,
  format: Prequantized,
  { rows: n, cols, most }: {
    readonly rows: number;
    readonly cols: number;
    /** Lanes of the adapter. */
    readonly most: number;
  },
): { readonly matrix: Matrix; readonly float: Matrix; readonly values: Float32Array } {
  const { rows, values } = randomRows(format, n, cols);
  const lanes = lanesFor(format, cols, most);
  const packed = toLanes({ cols, lanes, format })(rows);
  const [operand, scales] = [device.words(packed.words), device.words(packed.scales)];
  const matrix: Matrix = {
    format,
    rowOrder: "stacked",
    rows: n,
    cols,
    lanes,
    shards: [{ operand, scales, first: 0, rows: n }],
  };
  return {
    matrix,
    values,
    float: uploadMatrix(device, values, { format: "f32", cols, lanes, shards: [n] }),
  };
}
