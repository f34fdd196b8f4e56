import assert from "node:assert/strict";
import { ScratchPool } from "../../src/gpu/scratch_pool.ts";
import { paperGpu } from "./paper.ts";

/** A pool in which a plan with values of these sizes, all at the same time, was laid out. */
function poolOf(...sizes: readonly number[]): ScratchPool {
  const pool = new ScratchPool(paperGpu({ software: false }), "scratch");
  pool.allocate([() => {
    const taken = new Set<number>();
    for (const size of sizes) taken.add(pool.place(size, taken));
  }]);
  return pool;
}

Deno.test("on paper buffers grow, and few are made", () => {
  const pool = new ScratchPool(paperGpu({ software: false }), "scratch");
  assert.equal(pool.place(100, new Set()), 0);
  assert.equal(pool.place(300, new Set()), 0);
  assert.equal(pool.place(50, new Set([0])), 1);
  assert.equal(pool.place(60, new Set()), 0);
  pool.allocate();
  assert.equal(pool.operand(0, 60).buffer.size, 300);
  assert.deepEqual([pool.operand(0, 60).offset, pool.operand(0, 60).size], [0, 60]);
});

Deno.test("the smallest buffer that has room is taken; where none has, there is a further one", () => {
  const pool = poolOf(1000, 200);
  assert.equal(pool.place(150, new Set()), 1);
  assert.equal(pool.place(150, new Set([1])), 0);
  assert.equal(pool.place(150, new Set([0, 1])), 2);
  assert.equal(pool.operand(2, 150).buffer.size, 150);
});

Deno.test("a further buffer changes no place that was given before", () => {
  const pool = poolOf(1000, 100);
  const places = () => {
    const first = pool.place(300, new Set());
    const second = pool.place(400, new Set([first]));
    return [first, second, pool.place(350, new Set([first, second]))];
  };
  const before = places();
  assert.deepEqual(before, [0, 2, 3]);
  // Of 320: it would fit the 300 best.
  assert.equal(pool.place(320, new Set([0, 2, 3])), 4);
  assert.deepEqual(places(), before);
});

Deno.test("plans that were laid out find room in the buffers that were made", () => {
  const made: string[] = [];
  const gpu = paperGpu({ software: false });
  const create = gpu.device.createBuffer.bind(gpu.device);
  Object.assign(gpu.device, {
    createBuffer: (of: GPUBufferDescriptor) => (made.push(of.label ?? ""), create(of)),
  });
  const pool = new ScratchPool(gpu, "scratch");
  // Growing, the second plan's 300 makes the place of 100 larger, which the first then takes for 200.
  const plans = [[200, 100], [100, 300], [250, 260]].map((sizes) => () => {
    const taken = new Set<number>();
    for (const size of sizes) taken.add(pool.place(size, taken));
  });
  pool.allocate(plans);
  const count = made.length;
  for (const plan of plans) plan();
  assert.equal(made.length, count);
});
