import { explore, type Job, type V } from "./explore.ts";
type P = [number, number];
const v = (g: P, o: P, stage: number, more: Partial<V> = {}): V => ({
  ...{ g, o, stage, bufs: 1, x: "f32", loop: true, guard: true },
  ...more,
});
const s = { x: "split" } as const;
export const SETS: Record<string, V[]> = {
  A: [
    v([2, 2], [2, 4], 32),
    v([2, 2], [2, 4], 32, { guard: false, gl: true }),
    v([2, 2], [2, 4], 32, { guard: false, gm: true }),
    v([2, 2], [2, 4], 32, s),
    v([4, 2], [2, 4], 32),
    v([4, 2], [2, 4], 32, s),
    v([2, 2], [2, 4], 32, { bufs: 2 }),
    v([2, 2], [2, 4], 32, { bufs: 2, ...s }),
    v([4, 2], [2, 4], 16, { bufs: 2, ...s }),
    v([4, 3], [2, 4], 32),
    v([2, 4], [2, 4], 32),
    v([2, 2], [2, 3], 32),
    v([2, 2], [2, 2], 32),
    v([2, 2], [2, 2], 64),
    v([1, 2], [2, 4], 32),
    v([2, 1], [2, 4], 32),
    v([2, 2], [3, 3], 32),
    v([2, 4], [2, 2], 32),
    v([4, 4], [2, 2], 32),
    v([2, 2], [4, 2], 32),
    v([2, 2], [2, 4], 16),
    v([2, 2], [2, 4], 32, { no: "x" }),
    v([2, 2], [2, 4], 32, { no: "c" }),
    v([2, 2], [2, 4], 32, { no: "xw" }),
    v([2, 2], [2, 4], 32, { no: "m" }),
  ],
  B: [
    v([2, 4], [1, 2], 64),
    v([1, 4], [2, 2], 64),
    v([1, 8], [2, 1], 64),
    v([1, 4], [2, 1], 64),
    v([1, 2], [2, 2], 64),
    v([1, 1], [2, 2], 64),
    v([1, 4], [2, 1], 128),
    v([1, 2], [2, 1], 64),
    v([1, 1], [2, 4], 32),
    v([1, 2], [2, 4], 32),
    v([1, 4], [2, 2], 32),
    v([1, 2], [2, 2], 64, s),
    v([2, 2], [1, 2], 64),
    v([1, 4], [2, 1], 64, { ahead: 2 }),
    v([1, 2], [2, 2], 64, { ahead: 2 }),
    v([2, 4], [1, 2], 64, { ahead: 2 }),
    v([2, 4], [1, 1], 64, { ahead: 2 }),
    v([1, 4], [2, 1], 64, { loop: false }),
    v([2, 4], [1, 2], 64, { loop: false }),
    v([2, 4], [1, 2], 64, { no: "x" }),
    v([2, 4], [1, 2], 64, { no: "m" }),
  ],
  C: [
    v([2, 4], [2, 2], 64),
    v([2, 2], [2, 4], 32),
    v([2, 2], [2, 2], 64),
    v([1, 4], [4, 1], 64),
    v([2, 4], [2, 1], 64),
    v([2, 2], [2, 2], 32),
    v([2, 4], [2, 2], 32),
    v([2, 4], [2, 2], 32, { ahead: 2 }),
    v([1, 2], [4, 2], 32),
    v([4, 2], [1, 4], 64),
    v([2, 4], [2, 1], 64, { ahead: 2 }),
    v([2, 4], [2, 2], 64, { loop: false }),
    v([2, 4], [2, 2], 64, s),
  ],
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
const WHERE: Record<string, Omit<Job, "variants">> = {
  A: { shape: "gateUp", rows: 512 },
  B: { shape: "gateUp", rows: 32 },
  C: { shape: "gateUp", rows: 64 },
  S: { shape: "odd2", rows: 24 },
};
if (import.meta.main) {
  await explore(
    (Deno.args[0] ?? "A").split(",").map((w) => {
      const [name = "", picks] = w.split(":");
      const variants = SETS[name] as V[];
      return {
        ...(WHERE[name] as Job),
        variants: picks ? picks.split(".").map((i) => variants[Number(i)] as V) : variants,
      };
    }),
    { seconds: Number(Deno.env.get("SECONDS_MAX") ?? 25), ms: Number(Deno.env.get("MS") ?? 8) },
  );
}
