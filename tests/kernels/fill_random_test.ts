import assert from "node:assert/strict";
import { fillParams, fillRandom } from "../../kernels/matmul/fill_random.ts";
import { widen } from "../../src/model/files/widen.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { openDevice } from "../gpu/device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

interface Fill {
  readonly seed: number;
  readonly stream: number;
  readonly std: number;
}

async function filled(words: number, fill: Fill): Promise<Uint32Array> {
  const out = device.filled(words, NaN);
  await device.run([fillRandom({ params: device.words(fillParams(fill)), out }, "fill")]);
  const bits = await device.readWords(out);
  out.buffer.destroy();
  return bits;
}

/** The word that the kernel promises. */
function expected({ seed, stream, std }: Fill, index: number): number {
  const bits = hash32(seed, stream, index);
  const scale = Math.fround(std * Math.sqrt(3) / 65536);
  const [low = 0, high = 0] = [bits & 0xffff, bits >>> 16].map((u) => {
    const word = new Uint32Array(Float32Array.of((2 * u - 65535) * scale).buffer)[0] ?? 0;
    return (word + 0x8000) >>> 16;
  });
  return (high << 16 | low) >>> 0;
}

for (const words of [1, 255, 256, 257, 10_000]) {
  Deno.test(`fill_random: ${words} words are those of the host, bit for bit`, async () => {
    const fill = { seed: 0xfffffffe, stream: 7, std: 0.02 };
    const host = Uint32Array.from({ length: words }, (_, i) => expected(fill, i));
    assert.deepEqual(await filled(words, fill), host);
  });
}

Deno.test("fill_random: a buffer past 65535 workgroups is filled to its end", async () => {
  const words = 65535 * 256 + 1000;
  const fill = { seed: 1, stream: 2, std: 1 };
  const bits = await filled(words, fill);
  for (let i = 0; i < words; i += 4099) assert.equal(bits[i], expected(fill, i), `word ${i}`);
  for (let i = words - 1500; i < words; i++) assert.equal(bits[i], expected(fill, i), `word ${i}`);
});

Deno.test("fill_random: uniform around 0 with the standard deviation asked for", async () => {
  const std = 0.125;
  const bits = await filled(1 << 16, { seed: 5, stream: 0, std });
  const values = widen(new Uint8Array(bits.buffer), "BF16");
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  const variance = values.reduce((sum, x) => sum + x * x, 0) / values.length;
  const most = values.reduce((found, x) => Math.max(found, Math.abs(x)), 0);
  // 4 standard deviations of the mean of 2^17 values.
  assert.ok(Math.abs(mean) < 4 * std / Math.sqrt(values.length), `mean ${mean}`);
  assert.ok(Math.abs(Math.sqrt(variance) / std - 1) < 0.01, `deviation ${Math.sqrt(variance)}`);
  assert.ok(most <= std * Math.sqrt(3) * 1.004 && most > std * 1.7, `largest ${most}`);
});

Deno.test("fill_random: seeds and streams are apart, and repeat", async () => {
  const fill = { seed: 1, stream: 2, std: 1 };
  const first = await filled(1000, fill);
  assert.deepEqual(await filled(1000, fill), first);
  for (
    const other of [{ ...fill, seed: 2 }, { ...fill, stream: 3 }, { ...fill, seed: 2, stream: 1 }]
  ) {
    const words = await filled(1000, other);
    assert.ok(words.filter((word, i) => word === first[i]).length < 5);
  }
});
