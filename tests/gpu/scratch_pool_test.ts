import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { type Lifetime, ScratchPool } from "../../src/gpu/scratch_pool.ts";
import { paperGpu } from "./paper.ts";

const paperPool = () => new ScratchPool(paperGpu({ software: false }), "scratch");

/** Values of these sizes, all needed at the same time. */
function together(...sizes: readonly number[]): Lifetime[] {
  return sizes.map((bytes) => ({ bytes, first: 0, last: 0 }));
}

/** A pool in which a plan with values of these sizes, all at the same time, was laid out. */
function poolOf(...sizes: readonly number[]): ScratchPool {
  const pool = paperPool();
  pool.allocate([() => pool.place(together(...sizes))]);
  return pool;
}

Deno.test("on paper buffers grow, and few are made", () => {
  const pool = paperPool();
  const values = [100, 300, 50, 60].map((bytes, i) => ({ bytes, first: 2 * i, last: 2 * i + 1 }));
  assert.deepEqual(pool.place(values), [0, 0, 0, 0]);
  assert.deepEqual(pool.place(together(400, 50)), [0, 1]);
  pool.allocate();
  assert.equal(pool.operand(0, 60).buffer.size, 400);
  assert.deepEqual([pool.operand(0, 60).offset, pool.operand(0, 60).size], [0, 60]);
});

Deno.test("a small value that is needed first leaves the largest buffer to the largest value", () => {
  const pool = paperPool();
  const [small, middle, large] = [10, 100, 1000].map((bytes, i) => ({
    bytes,
    first: i,
    last: i + 1,
  }));
  const places = pool.place([small!, middle!, large!]);
  assert.deepEqual(places, [0, 1, 0]);
  pool.allocate();
  assert.deepEqual([0, 1].map((place) => pool.operand(place, 1).buffer.size), [1000, 100]);
});

Deno.test("the smallest buffer that has room is taken; where none has, there is a further one", () => {
  const pool = poolOf(1000, 200);
  assert.deepEqual(pool.place(together(150)), [1]);
  assert.deepEqual(pool.place(together(150, 150, 150)), [1, 0, 2]);
  assert.equal(pool.operand(2, 150).buffer.size, 150);
});

Deno.test("a further buffer changes no place that was given before", () => {
  const pool = poolOf(1000, 100);
  const values = together(400, 350, 300);
  const before = pool.place(values);
  assert.deepEqual(before, [0, 2, 3]);
  assert.deepEqual(pool.place(together(500, 400, 350, 320)), [0, 4, 2, 5]);
  assert.deepEqual(pool.place(values), before);
});

Deno.test("values that are needed at the same time have different places with room for each", () => {
  const lifetime = fc.record({
    bytes: fc.integer({ min: 1, max: 50 }),
    first: fc.nat(12),
    last: fc.nat(12),
  }).map(({ bytes, first, last }) => ({
    bytes,
    first: Math.min(first, last),
    last: Math.max(first, last),
  }));
  fc.assert(fc.property(fc.array(fc.array(lifetime), { maxLength: 4 }), (plans) => {
    const pool = paperPool();
    pool.allocate(plans.map((values) => () => pool.place(values)));
    for (const values of plans) {
      const places = pool.place(values);
      for (const [i, { bytes, first, last }] of values.entries()) {
        const place = places[i] as number;
        assert.ok(pool.operand(place, bytes).buffer.size >= bytes);
        const others = values.filter((other, j) =>
          j !== i && places[j] === place && other.first <= last && first <= other.last
        );
        assert.deepEqual(others, []);
      }
    }
  }));
});

Deno.test("plans that were laid out find room in the buffers that were made", () => {
  const made: string[] = [];
  const gpu = paperGpu({ software: false });
  const create = gpu.device.createBuffer.bind(gpu.device);
  Object.assign(gpu.device, {
    createBuffer: (of: GPUBufferDescriptor) => (made.push(of.label ?? ""), create(of)),
  });
  const pool = new ScratchPool(gpu, "scratch");
  const plans = [[200, 100], [100, 300], [250, 260]].map((sizes) => () =>
    pool.place(together(...sizes))
  );
  pool.allocate(plans);
  const count = made.length;
  for (const plan of plans) plan();
  assert.equal(made.length, count);
});
