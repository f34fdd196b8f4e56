import assert from "node:assert/strict";
import { openSubmitter, type Submission } from "../../src/engine/device/submit/submit.ts";
import { dispatch, kernel } from "../../src/gpu/kernel.ts";
import { compiler } from "../../src/gpu/program.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Wait, WebGpuName } from "../../src/gpu/webgpu.ts";
import { openDevice } from "../gpu/device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const ADD = kernel(
  "add",
  `
override BY: u32;
@group(0) @binding(0) var<storage, read_write> sum: array<u32>;
@compute @workgroup_size(1) fn main() { sum[0] += BY; sum[1] = BY; }
`,
  { bindings: ["sum"], constants: ["BY"] },
);

async function openAdder(
  { profile = false, webgpu = device.gpu.info.webgpu, mapped = device.gpu.mapped }: {
    readonly profile?: boolean;
    readonly webgpu?: WebGpuName;
    readonly mapped?: Gpu["mapped"];
  } = {},
) {
  const sum = device.words([0, 0, 0, 0]);
  const { compile } = compiler(device.gpu);
  const work = async (by: number): Promise<Submission> => {
    const add = dispatch(ADD, { buffers: { sum }, constants: { BY: by }, workgroups: [1] });
    return { programs: [await compile([add]), await compile([])], words: 2 };
  };
  const gpu = { ...device.gpu, mapped, info: { ...device.gpu.info, webgpu } };
  const submitter = await openSubmitter(gpu, sum.buffer, { words: 4, profile });
  return { work, submitter };
}

for (const webgpu of ["builtin", "dawn"] as const) {
  Deno.test(`submit, as on ${webgpu}: each run of a group has its own result, whatever was encoded ahead`, () =>
    resultsOf(webgpu));
}

async function resultsOf(webgpu: WebGpuName): Promise<void> {
  const { work, submitter } = await openAdder({ webgpu });
  const works = await Promise.all([1, 10, 100].map(work));
  let sum = 0;
  for (
    const [which, count] of [
      [0, 1],
      [0, 3],
      [1, 8],
      [0, 2],
      [2, 1],
      [1, 1],
      [0, 8],
      [0, 32],
      [0, 30],
      [0, 32],
      [0, 7],
      [0, 21],
    ] as const
  ) {
    const runs = await (await submitter.repeat(works[which] as Submission, count)).read();
    const by = 10 ** which;
    const expected = Array.from({ length: count }, (_, i) => [sum + by * (i + 1), by]);
    assert.deepEqual(runs.map(({ words }) => [...words]), expected);
    sum += by * count;
  }
  const { words } = await submitter.run(works[2] as Submission);
  assert.deepEqual([...words], [sum + 100, 100]);
}

Deno.test("submit: Dawn gets every run alone, so that the device begins with the first", async () => {
  const { queue } = device.gpu.device;
  const submit = queue.submit.bind(queue);
  for (const [webgpu, alone] of [["dawn", true], ["builtin", false]] as const) {
    const { work, submitter } = await openAdder({ webgpu });
    const one = await work(1);
    await (await submitter.repeat(one, 8)).read(); // encodes the next eight
    const sizes: number[] = [];
    queue.submit = (buffers) => {
      sizes.push([...buffers].length);
      submit(buffers);
    };
    const submitted = await submitter.repeat(one, 8);
    Reflect.deleteProperty(queue, "submit");
    await submitted.read();
    assert.equal(sizes.every((size) => size === 1), alone);
    assert.equal(sizes.length, alone ? 8 : 1);
  }
});

Deno.test("submit: a group may begin while another is unread, and no third one", async () => {
  const { work, submitter } = await openAdder();
  const [one, ten] = await Promise.all([work(1), work(10)]);
  let sum = 0;
  let before = await submitter.repeat(one, 3);
  for (let turn = 0; turn < 6; turn++) {
    const next = await submitter.repeat(turn % 2 ? one : ten, 3);
    await assert.rejects(submitter.repeat(one, 1), /2 groups of runs are unread/);
    const by = turn % 2 ? 10 : 1;
    const runs = await before.read();
    assert.deepEqual(runs.map(({ words }) => words[0]), [1, 2, 3].map((n) => sum + by * n));
    sum += 3 * by;
    before = next;
  }
  await before.read();
});

Deno.test("submit: what a work took twice is how long the device is said to be busy the third time", async () => {
  const waits: Wait[] = [];
  const { work, submitter } = await openAdder({
    mapped(buffer, wait = {}) {
      waits.push(wait);
      wait.stillBusy?.();
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200); // a slow device
      return device.gpu.mapped(buffer);
    },
  });
  const one = await work(1);
  for (let i = 0; i < 3; i++) await (await submitter.repeat(one, 2)).read();
  await submitter.run(await work(10));
  assert.deepEqual(waits.map(({ busyMs = NaN }) => busyMs > 0), [false, false, true, false]);
});

Deno.test("submit: what was encoded ahead and gave way is encoded again, and runs once", async () => {
  const { work, submitter } = await openAdder();
  const works = await Promise.all(Array.from({ length: 12 }, (_, i) => work(i + 1)));
  let sum = 0;
  for (let turn = 0; turn < 3; turn++) {
    for (const [i, one] of works.entries()) {
      sum += i + 1;
      const runs = await (await submitter.repeat(one, 1)).read();
      assert.deepEqual([...runs[0]?.words ?? []], [sum, i + 1]);
    }
  }
});

Deno.test({
  name: "submit: with a profile every run of a group has the times of its programs",
  ignore: !device.gpu.info.features.includes("timestamp-query"),
  async fn() {
    const { work, submitter } = await openAdder({ profile: true });
    const one = await work(5);
    for (const count of [8, 1, 3]) {
      const runs = await (await submitter.repeat(one, count)).read();
      assert.equal(runs.length, count);
      for (const { words, ms } of runs) {
        assert.equal(words[1], 5);
        assert.equal(ms.length, 2);
        assert.ok(ms.every((time) => time >= 0));
      }
      const total = runs.flatMap(({ ms }) => ms).reduce((sum, time) => sum + time, 0);
      assert.ok(total > 0);
    }
  },
});
