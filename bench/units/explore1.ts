import { explore, type Job, type V } from "./explore.ts";
const v = (
  g: [number, number],
  o: [number, number],
  stage: number,
  bufs: 1 | 2,
  x: "f32" | "split",
  more: Partial<V> = {},
): V => ({ g, o, stage, bufs, x, ...more });
const today = v([2, 2], [2, 4], 32, 1, "f32", { guard: true, loop: true });
const A: V[] = [
  today,
  v([2, 2], [2, 4], 32, 1, "f32", { guard: true }),
  v([2, 2], [2, 4], 32, 1, "f32", { loop: true }),
  v([2, 2], [2, 4], 32, 1, "f32"),
  v([2, 2], [2, 4], 32, 1, "split"),
  v([2, 2], [2, 4], 32, 2, "f32"),
  v([2, 2], [2, 4], 32, 2, "split"),
  v([4, 2], [2, 4], 32, 1, "f32"),
  v([4, 2], [2, 4], 32, 1, "split"),
  v([4, 2], [2, 4], 16, 2, "split"),
  v([4, 2], [2, 4], 16, 2, "f32"),
  v([4, 2], [2, 4], 16, 2, "split", { mulFirst: true }),
  v([4, 3], [2, 4], 32, 1, "split"),
  v([4, 3], [2, 4], 16, 2, "split"),
  v([2, 4], [4, 2], 32, 1, "split"),
  v([2, 4], [2, 4], 32, 1, "split"),
  v([2, 4], [2, 3], 32, 1, "split"),
  v([2, 2], [2, 4], 32, 1, "split", { pad: 0 }),
  v([2, 2], [2, 4], 64, 1, "split"),
  v([2, 2], [2, 4], 32, 1, "f32", { loop: true, fixed: true }),
  v([2, 2], [2, 4], 32, 1, "split", { fixed: true }),
];
const B: V[] = [
  v([2, 4], [1, 2], 64, 1, "f32", { guard: true, loop: true }),
  v([1, 8], [2, 1], 64, 1, "f32"),
  v([1, 4], [2, 2], 64, 1, "f32"),
  v([1, 4], [2, 2], 64, 1, "split"),
  v([1, 4], [2, 4], 32, 1, "split"),
  v([1, 4], [2, 4], 32, 2, "split"),
  v([1, 2], [2, 2], 64, 1, "split"),
  v([1, 1], [2, 2], 64, 1, "split"),
  v([1, 1], [2, 2], 64, 1, "split", { xd: true }),
  v([1, 2], [2, 2], 64, 1, "split", { xd: true }),
  v([1, 2], [2, 4], 32, 1, "split", { wd: true }),
  v([2, 4], [1, 4], 32, 1, "split"),
];
const C: V[] = [
  v([2, 4], [2, 2], 64, 1, "f32", { guard: true, loop: true }),
  v([2, 4], [2, 2], 64, 1, "f32"),
  v([2, 4], [2, 2], 64, 1, "split"),
  v([2, 4], [2, 4], 32, 1, "split"),
  v([2, 2], [2, 4], 32, 1, "split"),
  v([2, 2], [2, 4], 32, 2, "split"),
  v([2, 4], [2, 2], 32, 2, "split"),
  v([1, 2], [4, 2], 64, 1, "split", { xd: true }),
];
export const SETS = { A, B, C };
const small = Deno.args.includes("--small");
const which = Deno.args[0] ?? "A";
const fast = (list: V[]) => small ? list.map((a) => ({ ...a })) : list;
const jobs: Record<string, Job[]> = small
  ? {
    A: [{ shape: "odd", rows: 40, variants: fast(A) }],
    B: [{ shape: "odd2", rows: 24, variants: fast(B) }],
    C: [{ shape: "odd2", rows: 32, variants: fast(C) }],
    S: [{
      shape: "odd2",
      rows: 24,
      variants: [
        v([1, 1], [1, 1], 16, 1, "f32", { guard: true, loop: true }),
        v([1, 2], [1, 1], 16, 1, "f32"),
        v([2, 1], [1, 1], 16, 2, "f32"),
        v([2, 1], [1, 1], 16, 2, "split", { mulFirst: true }),
        v([2, 1], [1, 1], 16, 1, "split", { xd: true }),
        v([2, 1], [1, 1], 16, 1, "split", { wd: true }),
      ],
    }],
  }
  : {
    A: [{ shape: "gateUp", rows: 512, variants: A }],
    B: [{ shape: "gateUp", rows: 32, variants: B }],
    C: [{ shape: "gateUp", rows: 64, variants: C }],
    today: [{ shape: "gateUp", rows: 512, variants: A.slice(0, 5) }],
  };
if (import.meta.main) await explore(which.split(",").flatMap((w) => {
  const [name = "", picks] = w.split(":");
  return (jobs[name] ?? []).map((job) => ({
    ...job,
    variants: picks ? picks.split(".").map((i) => job.variants[Number(i)] as V) : job.variants,
  }));
}), {
  seconds: Number(Deno.env.get("SECONDS_MAX") ?? 25),
  ms: small ? 0.01 : 8,
});
