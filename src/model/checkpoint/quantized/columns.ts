/** Transposes 4-bit matrices that are stored by columns to rows: words of eight weights consecutive along k. */

interface Shape {
  readonly rows: number;
  readonly cols: number;
}

/** Columns of words that are transposed at a time, so that source and result stay in cache. */
const TILE = 64;

/**
 * GPTQ: [cols / 8, rows]. A word has the weights 8 j .. 8 j + 7 of one row, the first in the lowest bits, so
 * whole words are transposed.
 *
 * Source: https://github.com/AutoGPTQ/AutoGPTQ, `QuantLinear.pack`
 */
export function gptqWords(stored: Uint32Array, { rows, cols }: Shape): Uint32Array {
  const width = cols / 8;
  const out = new Uint32Array(stored.length);
  for (let first = 0; first < rows; first += TILE) {
    const end = Math.min(rows, first + TILE);
    for (let j = 0; j < width; j++) {
      for (let row = first; row < end; row++) out[row * width + j] = stored[j * rows + row] ?? 0;
    }
  }
  return out;
}

/** First bit of the nibble of column c, of eight, in an AWQ word; the inverse of its order_map. */
const AWQ_SHIFTS = [0, 16, 4, 20, 8, 24, 12, 28];

/**
 * AWQ: [cols, rows / 8]. Nibble i of a word is the weight of row 8 j + [0, 2, 4, 6, 1, 3, 5, 7][i], so
 * squares of eight by eight weights are transposed.
 *
 * Source: https://github.com/casper-hansen/AutoAWQ, `WQLinear_GEMM.from_linear`
 */
export function awqWords(stored: Uint32Array, { rows, cols }: Shape): Uint32Array {
  const [width, wide] = [cols / 8, rows / 8];
  const out = new Uint32Array(stored.length);
  for (let j = 0; j < width; j++) {
    for (let eight = 0; eight < wide; eight++) {
      for (let c = 0; c < 8; c++) {
        const shift = AWQ_SHIFTS[c] ?? 0;
        let word = 0;
        for (let k = 0; k < 8; k++) {
          const nibble = (stored[(8 * j + k) * wide + eight] ?? 0) >>> shift & 15;
          word |= nibble << 4 * k;
        }
        out[(8 * eight + c) * width + j] = word >>> 0;
      }
    }
  }
  return out;
}
