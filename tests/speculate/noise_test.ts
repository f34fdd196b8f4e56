import assert from "node:assert/strict";
import { hash32, mix32 } from "../../src/speculate/noise.ts";
import { exponential } from "../reference/noise.ts";
import { gTest } from "../statistics.ts";

/** seed, position, token, bits. */
const VECTORS: readonly (readonly [number, number, number, number])[] = [
  [0, 0, 0, 0x6648b050],
  [0, 0, 1, 0xe1cd8439],
  [0, 1, 0, 0x480cd07e],
  [1, 0, 0, 0xc5c8ee3d],
  [42, 17, 31999, 0xd8d5b3ee],
  [4294967295, 4294967295, 4294967295, 0x3d26313e],
  [2654435769, 1023, 128255, 0x470e7575],
];

Deno.test("noise: fixed vectors, the same on every machine and in WGSL", () => {
  for (const [seed, position, token, bits] of VECTORS) {
    assert.equal(hash32(seed, position, token), bits);
  }
  assert.equal(mix32(0), 0);
});

Deno.test("noise: every argument bit flips every output bit about half of the time", () => {
  const samples = 1000;
  for (let bit = 0; bit < 96; bit++) {
    const flips = new Array<number>(32).fill(0);
    const mask = [0, 1, 2].map((word) => word === bit >> 5 ? (1 << (bit & 31)) >>> 0 : 0);
    for (let n = 0; n < samples; n++) {
      const [seed = 0, position = 0, token = 0] = [n * 7, n % 50, n * 3];
      const other = hash32(
        (seed ^ (mask[0] ?? 0)) >>> 0,
        (position ^ (mask[1] ?? 0)) >>> 0,
        (token ^ (mask[2] ?? 0)) >>> 0,
      );
      const changed = hash32(seed, position, token) ^ other;
      for (let out = 0; out < 32; out++) flips[out] = (flips[out] ?? 0) + (changed >>> out & 1);
    }
    // 6 standard deviations of a fair coin: 3072 cells, so about one in 10^5 by chance.
    const worst = Math.max(...flips.map((count) => Math.abs(count / samples - 0.5)));
    assert.ok(worst < 6 * 0.5 / Math.sqrt(samples), `argument bit ${bit}: ${worst}`);
  }
});

Deno.test("noise: high and low bytes are uniform along each argument", () => {
  const along: readonly ((n: number) => number)[] = [
    (n) => hash32(n, 5, 9),
    (n) => hash32(5, n, 9),
    (n) => hash32(5, 9, n),
  ];
  const law = new Array<number>(256).fill(1 / 256);
  for (const hash of along) {
    for (const shift of [0, 24]) {
      const counts = new Array<number>(256).fill(0);
      for (let n = 0; n < 50_000; n++) {
        const cell = hash(n) >>> shift & 255;
        counts[cell] = (counts[cell] ?? 0) + 1;
      }
      assert.ok(gTest(counts, law).p > 1e-4);
    }
  }
});

Deno.test("noise: no row is another with its tokens exchanged", () => {
  // Two of 64 rows x 64 tokens share a value by chance with probability 0.002.
  const seen = new Set<number>();
  for (let position = 0; position < 64; position++) {
    for (let token = 0; token < 64; token++) seen.add(hash32(1, position, token));
  }
  assert.equal(seen.size, 64 * 64);
});

Deno.test("noise: exponential is finite, positive and falls in the right tenths", () => {
  assert.ok(exponential(0) > 1e-10 && exponential(0) < 1.3e-10);
  assert.ok(exponential(2 ** 32 - 1) > 22 && exponential(2 ** 32 - 1) < 23);
  assert.ok(Math.abs(exponential(2 ** 31) - Math.LN2) < 1e-9);
  const counts = new Array<number>(10).fill(0);
  for (let n = 0; n < 20_000; n++) {
    const cell = Math.floor(10 * Math.exp(-exponential(hash32(3, n, 0))));
    counts[cell] = (counts[cell] ?? 0) + 1;
  }
  assert.ok(gTest(counts, new Array<number>(10).fill(0.1)).p > 1e-4);
});
