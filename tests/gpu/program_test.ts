import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { compiler, encode, type Program, within } from "../../src/gpu/program.ts";
import { openDevice } from "./device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

type Step = Kernel<"x" | "out", "BY">;

/** `out[i] += x[i] * BY`, or another body. */
function step(name: string, body = "out[id.x] += x[id.x] * BY;"): Step {
  return kernel(
    name,
    `
override BY: f32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) { ${body} }
`,
    { bindings: ["x", "out"], constants: ["BY"] },
  );
}

function launch(kernel: Step, x: Operand, out: Operand, by: number): Dispatch {
  return dispatch(kernel, { buffers: { x, out }, constants: { BY: by }, workgroups: [1] });
}

/**
 * Of a kernel that is launched with `many` values of a constant: on software adapters one, with the constant in a
 * buffer.
 */
function pipelines(many: number): number {
  return device.gpu.info.software ? 1 : many;
}

function replay(program: Program): void {
  const encoder = device.gpu.device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  encode(pass, program);
  pass.end();
  device.gpu.device.queue.submit([encoder.finish()]);
}

Deno.test("program: dispatches run in order and see what came before", async () => {
  const [a, b] = [device.floats([1, 2, 3, 4]), device.filled(4, 1)];
  const add = step("add");
  const program = await compiler(device.gpu).compile([
    launch(add, a, b, 10), // b = 1 + 10 a
    launch(add, b, a, 1), // a = a + b
    launch(add, a, b, -1), // b = b - a
  ]);
  assert.deepEqual(program.steps.map(({ label }) => label), ["add", "add", "add"]);
  replay(program);
  assert.deepEqual([...await device.readFloats(a)], [12, 23, 34, 45]);
  assert.deepEqual([...await device.readFloats(b)], [-1, -2, -3, -4]);
});

Deno.test("program: offset and size of an operand choose a part of its buffer", async () => {
  const wide = device.floats(Array.from({ length: 128 }, (_, i) => i));
  const out = device.filled(4);
  const part = { ...wide, offset: 256, size: 16 };
  replay(await compiler(device.gpu).compile([launch(step("add"), part, out, 1)]));
  assert.deepEqual([...await device.readFloats(out)], [64, 65, 66, 67]);
});

Deno.test("program: where slots are short, what has workgroups for cells has fewer", async () => {
  const count = kernel(
    "count",
    `
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) { out[id.z] += 1u; }
`,
    { bindings: ["out"], constants: [] },
  );
  const [out, early] = [device.words([0, 0, 0, 0]), device.words([0, 0, 0, 0])];
  const launch = { buffers: { out }, constants: {}, workgroups: [1, 1, 4] } as const;
  const { created, compile } = compiler(device.gpu);
  const program = await compile([
    dispatch(count, { ...launch, cellsEach: 64 }),
    dispatch(count, launch),
    dispatch(count, { ...launch, buffers: { out: early }, cellsEach: 64, groupsBefore: 2 }),
  ]);
  const before = { ...created };
  for (const cells of [0, 64, 65, 1000]) replay(within(program, cells));
  assert.deepEqual([...await device.readWords(out)], [8, 6, 5, 5]);
  assert.deepEqual([...await device.readWords(early)], [4, 4, 4, 2]);
  assert.deepEqual(created, before);
});

Deno.test("program: a dispatch that is for some numbers of cells runs at those", async () => {
  const [few, many] = [device.filled(4), device.filled(4)];
  const { compile } = compiler(device.gpu);
  const one = device.filled(4, 1);
  const program = await compile([
    { ...launch(step("add"), one, few, 1), forCells: { from: 0, upTo: 64 } },
    { ...launch(step("add"), one, many, 1), forCells: { from: 65, upTo: Infinity } },
  ]);
  for (const cells of [0, 64, 65, 1000, Infinity]) replay(within(program, cells));
  assert.equal((await device.readFloats(few))[0], 2);
  assert.equal((await device.readFloats(many))[0], 3);
});

Deno.test("program: equal constants share a pipeline, equal buffers a bind group; replaying makes nothing", async () => {
  const { created, compile } = compiler(device.gpu);
  const [x, out] = [device.filled(4, 1), device.filled(4)];
  const [add, subtract] = [step("add"), step("subtract", "out[id.x] -= x[id.x] * BY;")];
  const plan = [launch(add, x, out, 2), launch(add, x, out, 3), launch(add, out, x, 2)];
  const program = await compile(plan);
  assert.deepEqual(created, { modules: 1, pipelines: pipelines(2), bindGroups: pipelines(2) + 1 });
  await compile([launch(add, x, out, 3), launch(subtract, x, out, 3)]);
  const after = { modules: 2, pipelines: pipelines(2) + 1, bindGroups: pipelines(2) + 2 };
  assert.deepEqual(created, after);
  for (let i = 0; i < 20; i++) replay(program);
  await device.readFloats(out);
  assert.deepEqual(created, after);
});

const [X, OUT] = [device.filled(4), device.filled(4)];

Deno.test("program: a fault in WGSL comes with the compiler's words", async () => {
  const broken = step("broken", "out[id.x] = y[id.x] * BY;");
  await assert.rejects(
    compiler(device.gpu).compile([launch(broken, X, OUT, 1)]),
    /Cannot compile a plan: [^]*(no definition in scope for identifier: `y`|unresolved value 'y')/,
  );
});

Deno.test("program: a fault of a pipeline comes with the compiler's words", async () => {
  const threads = kernel(
    "threads",
    `
override THREADS: u32;
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(THREADS) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  out[id.x] = 1.0;
}
`,
    { bindings: ["out"], constants: ["THREADS"] },
  );
  const plan = (count: number) => [
    dispatch(threads, { buffers: { out: OUT }, constants: { THREADS: count }, workgroups: [1] }),
  ];
  const { compile } = compiler(device.gpu);
  await assert.rejects(compile(plan(1 << 20)), /Cannot compile a plan: [^]*(size|constant)/i);
  assert.equal((await compile(plan(4))).steps.length, 1);
  device.gpu.check();
});

Deno.test("program: a plan that cannot even be begun leaves no error scope open for later errors", async () => {
  const x = device.floats([1, 2, 3, 4]);
  const gone = { buffer: undefined as unknown as GPUBuffer };
  const { compile } = compiler(device.gpu);
  await assert.rejects(compile([launch(step("of_no_buffer"), x, gone, 1)]), TypeError);
  await assert.rejects(device.gpu.device.popErrorScope()); // there is none
});

Deno.test("program: plans that are compiled at once share what they have in common", async () => {
  const { created, compile } = compiler(device.gpu);
  const [add, subtract] = [step("add"), step("subtract", "out[id.x] -= x[id.x] * BY;")];
  const plan = [launch(add, X, OUT, 1), launch(subtract, X, OUT, 1)];
  const [first, second] = await Promise.all([compile(plan), compile(plan)]);
  assert.deepEqual(created, { modules: 2, pipelines: 2, bindGroups: 4 });
  const pipelines = (program?: Program) => program?.steps.map(({ pipeline }) => pipeline);
  assert.deepEqual(pipelines(first), pipelines(second));
});

Deno.test("program: bindings and limits that do not fit come with the compiler's words", async () => {
  const { compile } = compiler(device.gpu);
  const add = step("add");
  await assert.rejects(
    compile([launch(add, { ...X, offset: 4, size: 4 }, OUT, 1)]),
    /Cannot compile a plan: [^]*align/i,
  );
  const mapped = device.gpu.device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_DST });
  await assert.rejects(
    compile([launch(add, X, { buffer: mapped }, 1)]),
    /Cannot compile a plan: [^]*usage/i,
  );
  await assert.rejects(compile([launch(add, X, { buffer: mapped }, 1)]), /usage/i);
  // After an error the compiler still works.
  assert.equal((await compile([launch(add, X, OUT, 1)])).steps.length, 1);
  device.gpu.check();
});

Deno.test("program: two sources of one name are an error that tells both and where they part", async () => {
  const { compile, prepare, created } = compiler(device.gpu);
  const [add, other] = [step("add"), step("add", "out[id.x] -= x[id.x] * BY;")];
  const second = { ...launch(other, X, OUT, 1), label: "layers.1.add" };
  const fault = new Error(
    'Cannot compile the kernel "add": two sources have this name, that of "add" and that of ' +
      '"layers.1.add"; line 5 is "' + add.code.split("\n")[4] + '" in the one and "' +
      other.code.split("\n")[4] + '" in the other',
  );
  await assert.rejects(compile([launch(add, X, OUT, 1), second]), fault);
  await compile([launch(add, X, OUT, 1), launch(step("add"), X, OUT, 2)]);
  assert.throws(() => prepare([second]), fault);
  assert.deepEqual(created, { modules: 1, pipelines: pipelines(2), bindGroups: pipelines(2) });
  const longer = { ...add, code: `${add.code}// more` };
  assert.throws(
    () => prepare([launch(longer, X, OUT, 1)]),
    /line 6 is "" in the one and "\/\/ more"/,
  );
  // The errors left no error scope open, which would hide what comes next.
  device.gpu.device.createBuffer({ size: 16, usage: 0 });
  await device.gpu.device.queue.onSubmittedWorkDone();
  assert.throws(() => device.gpu.check(), /The GPU reported: /);
});

Deno.test("program: more storage buffers or workgroup memory than the adapter has is told in one line", async () => {
  const add = step("add");
  const kept = { ...add, name: "kept", code: `var<workgroup> kept: array<f32, 257>;\n${add.code}` };
  const most = { maxStorageBuffersPerShaderStage: 2, maxComputeWorkgroupStorageSize: 1040 };
  const plans = [add, kept].map((kernel) => [launch(kernel, X, OUT, 1)]);
  const info = { ...device.gpu.info, adapter: "a GPU", software: false };
  const compilerOf = (limits: Partial<GPUSupportedLimits>) =>
    compiler({ ...device.gpu, info, limits: { ...device.gpu.limits, ...most, ...limits } });
  for (const plan of plans) assert.equal((await compilerOf({}).compile(plan)).steps.length, 1);
  const faults = [
    [
      { maxStorageBuffersPerShaderStage: 1 },
      'Cannot compile the kernel "kept": it binds 2 storage buffers, the adapter\'s ' +
      "maxStorageBuffersPerShaderStage is 1",
    ],
    [
      { maxComputeWorkgroupStorageSize: 1039 },
      'Cannot compile the kernel "kept": it has 1040 bytes of workgroup memory, the adapter\'s ' +
      "maxComputeWorkgroupStorageSize is 1039",
    ],
  ] as const;
  for (const [limits, text] of faults) {
    const { compile, prepare } = compilerOf(limits);
    const plan = [launch(kept, X, OUT, 1)];
    await assert.rejects(compile(plan), new UsageError(text));
    assert.throws(() => prepare(plan), new UsageError(text));
  }
});

Deno.test("program: what the device reports outside of compile is thrown by check, once", async () => {
  device.gpu.device.createBuffer({ size: 16, usage: 0 });
  await device.gpu.device.queue.onSubmittedWorkDone();
  assert.throws(() => device.gpu.check(), /The GPU reported: /);
  device.gpu.check();
});

Deno.test("program: a movable buffer is replaced in what was made and in what is made later", async () => {
  const [x, other, out] = [
    device.floats([1, 2, 3, 4]),
    device.floats([5, 5, 5, 5]),
    device.filled(4, 0),
  ];
  const make = compiler(device.gpu, new Set([x.buffer]));
  const plan = [launch(step("moving"), x, out, 1)];
  const before = await make.compile(plan);
  const copy = within(before, 1);
  make.replace(x.buffer, undefined);
  const gone = await make.compile(plan);
  for (const program of [before, copy, gone]) {
    assert.throws(() => replay(program), /^Error: Cannot run "moving": a buffer of it is gone$/);
  }
  make.replace(x.buffer, other.buffer);
  for (const program of [before, copy, gone, await make.compile(plan)]) replay(program);
  assert.deepEqual([...await device.readFloats(out)], [20, 20, 20, 20]);
  assert.throws(() => make.replace(other.buffer, x.buffer), /does not move/);
});
