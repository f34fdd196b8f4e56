import assert from "node:assert/strict";
import { dispatch, kernel, type Operand, workAt } from "../../src/gpu/kernel.ts";
import { describe } from "../reference/describe.ts";

const CODE = `
override SCALE: f32; // may be any number
override COLS: u32;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(0)
var<storage, read> x: array<f32>;
var<workgroup> partial: array<f32, 4>;
@compute @workgroup_size(1) fn main() { out[0] = x[COLS] * SCALE; }
`;
const DOUBLE = kernel("double", CODE, { bindings: ["x", "out"], constants: ["COLS", "SCALE"] });

// describe() looks at a buffer's label alone.
const operand = (label: string): Operand => ({ buffer: { label } as GPUBuffer });

Deno.test("kernel: bindings go by their numbers, constants in any order", () => {
  assert.deepEqual(DOUBLE.bindings, ["x", "out"]);
  assert.deepEqual(DOUBLE.numbers, [0, 1]);
  const sparse = kernel("sparse", CODE.replace("binding(1)", "binding(15)"), {
    bindings: ["x", "out"],
    constants: ["COLS", "SCALE"],
  });
  assert.deepEqual(sparse.numbers, [0, 15]);
  assert.deepEqual(DOUBLE.constants, ["COLS", "SCALE"]);
  assert.equal(DOUBLE.code, CODE);
});

Deno.test("kernel: names that the WGSL does not have are an error", () => {
  const constants = ["COLS", "SCALE"];
  for (const bindings of [["out", "x"], ["x"], ["x", "y"], ["x", "out", "z"]]) {
    assert.throws(
      () => kernel("double", CODE, { bindings, constants }),
      /kernel double: WGSL binds x,out, declared/,
    );
  }
  for (const constants of [["COLS"], ["COLS", "SCALES"], []]) {
    assert.throws(
      () => kernel("double", CODE, { bindings: ["x", "out"], constants }),
      /kernel double: WGSL overrides COLS,SCALE, declared/,
    );
  }
});

Deno.test("kernel: all bindings are storage buffers", () => {
  const uniform = CODE.replace("var<storage, read> x", "var<uniform> x");
  const declared = { bindings: ["x", "out"], constants: ["COLS", "SCALE"] };
  assert.throws(
    () => kernel("double", uniform, declared),
    /kernel double: WGSL binds out, declared/,
  );
});

Deno.test("dispatch: names are checked by the compiler, and where it does not know them", () => {
  const [x, out] = [operand("x"), operand("out")];
  const constants = { COLS: 1, SCALE: 2 };
  const workgroups = [1] as const;
  dispatch(DOUBLE, { buffers: { x, out }, constants, workgroups });
  assert.throws(
    // @ts-expect-error: out is missing
    () => dispatch(DOUBLE, { buffers: { x }, constants, workgroups }),
    { message: 'Cannot record "double": double binds x,out, given x' },
  );
  // @ts-expect-error: y is no binding
  dispatch(DOUBLE, { buffers: { x, out, y: x }, constants, workgroups });
  assert.throws(
    // @ts-expect-error: SCALE is missing
    () => dispatch(DOUBLE, { buffers: { x, out }, constants: { COLS: 1 }, workgroups }),
    { message: 'Cannot record "double": double overrides COLS,SCALE, given COLS' },
  );
  // @ts-expect-error: ROWS is no constant
  dispatch(DOUBLE, { buffers: { x, out }, constants: { ...constants, ROWS: 1 }, workgroups });
  // @ts-expect-error: a constant is a number
  dispatch(DOUBLE, { buffers: { x, out }, constants: { COLS: 1, SCALE: "2" }, workgroups });
  // @ts-expect-error: four dimensions
  dispatch(DOUBLE, { buffers: { x, out }, constants, workgroups: [1, 1, 1, 1] });
});

Deno.test("dispatch: of a kernel that declares no names, those of its text", () => {
  const any = kernel("any", CODE);
  assert.deepEqual([any.bindings, any.constants], [["x", "out"], ["COLS", "SCALE"]]);
  const [buffers, constants] = [{ x: operand("x"), out: operand("out") }, { COLS: 1, SCALE: 2 }];
  dispatch(any, { buffers, constants, workgroups: [1] });
  assert.throws(
    () =>
      dispatch(any, { buffers: { x: operand("x") }, constants: {}, workgroups: [1], label: "l" }),
    { message: 'Cannot record "l": any binds x,out, given x; overrides COLS,SCALE, given ' },
  );
});

Deno.test("dispatch: more workgroups than every adapter takes are refused, with the launch's label", () => {
  const launch = {
    buffers: { x: operand("x"), out: operand("out") },
    constants: { COLS: 1, SCALE: 2 },
    label: "layers.0.gate",
  };
  dispatch(DOUBLE, { ...launch, workgroups: [65535, 65535, 65535] });
  assert.throws(() => dispatch(DOUBLE, { ...launch, workgroups: [2, 65536] }), {
    message: 'Cannot record "layers.0.gate": 2 x 65536 x 1 workgroups of double, ' +
      "at most 65535 go along one dimension",
  });
});

Deno.test("dispatch: workgroups default to 1, the label to the kernel's name", () => {
  const launch = {
    buffers: { x: operand("x"), out: operand("out") },
    constants: { COLS: 1, SCALE: 2 },
  };
  const plain = dispatch(DOUBLE, { ...launch, workgroups: [7] });
  assert.deepEqual(plain.workgroups, [7, 1, 1]);
  assert.equal(plain.label, "double");
  const named = dispatch(DOUBLE, { ...launch, workgroups: [7, 2, 3], label: "layers.0.double" });
  assert.deepEqual(named.workgroups, [7, 2, 3]);
  assert.equal(named.label, "layers.0.double");
});

Deno.test("describe: one line a dispatch, bindings in the order of their numbers, constants as they are given", () => {
  const buffers = { out: operand("act"), x: { ...operand("normed"), offset: 512 } };
  const constants = { SCALE: 0.5, COLS: 64 };
  const first = dispatch(DOUBLE, { buffers, constants, workgroups: [3, 2], label: "layers.0.up" });
  const second = dispatch(DOUBLE, { buffers, constants, workgroups: [1] });
  assert.equal(
    describe([first, second]),
    "layers.0.up double [3,2,1] x=normed+512 out=act SCALE=0.5 COLS=64\n" +
      "double double [1,1,1] x=normed+512 out=act SCALE=0.5 COLS=64",
  );
});

Deno.test("work grows with the context as far as a window reaches", () => {
  const context = { bytesPerCell: 2, flopsPerCell: 3 };
  const at = { cells: 200, seen: 100 };
  assert.deepEqual(workAt({ bytes: 10, flops: 5 }, at), { bytes: 10, flops: 5 });
  const all = { bytes: 10 + 2 * 200, flops: 5 + 3 * 100 };
  assert.deepEqual(workAt({ bytes: 10, flops: 5, context }, at), all);
  const wide = { ...context, window: 1000 };
  assert.deepEqual(workAt({ bytes: 10, flops: 5, context: wide }, at), all);
  const narrow = { ...context, window: 25 };
  const quarter = { bytes: 10 + 2 * 50, flops: 5 + 3 * 25 };
  assert.deepEqual(workAt({ bytes: 10, flops: 5, context: narrow }, at), quarter);
});
