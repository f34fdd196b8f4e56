import { explore, type Job, type V } from "./explore.ts";
type P = [number, number];
const v = (g: P, o: P, stage: number, more: Partial<V> = {}): V => ({
  ...{ g, o, stage, bufs: 1, x: "f32", loop: true, guard: true },
  ...more,
});
const s = { x: "split" } as const;
const base = v([2, 2], [2, 4], 32);
const b32 = v([1, 8], [2, 1], 64);
const b64 = v([2, 4], [2, 2], 64);
export const SETS: Record<string, V[]> = {
  A: [
    base,
    b64,
    v([2, 4], [2, 2], 32),
    v([2, 2], [2, 3], 32),
    v([1, 2], [2, 4], 32),
    v([2, 2], [3, 3], 32),
  ],
  Q: [base, b64, v([2, 2], [2, 3], 32), v([2, 4], [2, 2], 32)],
  C: [
    b64,
    base,
    v([2, 2], [2, 2], 64),
    v([4, 2], [1, 4], 64),
    v([2, 4], [2, 1], 64, { ahead: 2 }),
    v([2, 4], [2, 2], 32),
    v([2, 2], [2, 2], 32, { ahead: 2 }),
  ],
  B: [
    b32,
    v([1, 4], [2, 1], 64, { ahead: 2 }),
    v([1, 8], [2, 1], 64, { ahead: 2 }),
    v([1, 4], [2, 2], 64, { ahead: 2 }),
    v([1, 4], [2, 1], 32, { ahead: 2 }),
    v([1, 4], [2, 1], 64, { ahead: 4 }),
  ],
  O: [b32, v([1, 4], [2, 1], 64), v([1, 4], [2, 1], 64, { ahead: 2 }), v([1, 4], [2, 1], 128)],
  P: [b64, base, v([2, 4], [2, 1], 64), v([2, 2], [2, 2], 64)],
  S: [
    v([1, 1], [1, 1], 16),
    v([1, 2], [1, 1], 16, { guard: false, gl: true }),
    v([2, 1], [1, 1], 16, { bufs: 2 }),
    v([2, 1], [1, 1], 16, { bufs: 2, ...s, guard: false }),
    v([2, 1], [1, 2], 16, { ahead: 2 }),
    v([2, 1], [1, 1], 16, { no: "xw" }),
    v([2, 1], [1, 1], 16, { no: "c" }),
    v([2, 1], [1, 1], 16, { no: "m" }),
  ],
};
const WHERE: Record<string, readonly [variants: string, shape: string, rows: number]> = {
  A: ["A", "gateUp", 512],
  B: ["B", "gateUp", 32],
  C: ["C", "gateUp", 64],
  D: ["Q", "qkv", 512],
  E: ["Q", "qGateUp", 512],
  F: ["O", "o", 32],
  G: ["P", "o", 64],
  H: ["O", "qkv", 32],
  I: ["Q", "o", 512],
  J: ["Q", "qDown", 512],
  K: ["P", "qkv", 64],
  S: ["S", "odd2", 24],
};
if (import.meta.main) {
  await explore(
    (Deno.args[0] ?? "A").split(",").map((w) => {
      const [name, shape, rows] = WHERE[w] as [string, string, number];
      return { shape, rows, variants: SETS[name] as V[] };
    }),
    { seconds: Number(Deno.env.get("SECONDS_MAX") ?? 25), ms: Number(Deno.env.get("MS") ?? 8) },
  );
}
