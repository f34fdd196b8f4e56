import assert from "node:assert/strict";
import { kernelOf } from "../../kernels/shader.ts";

interface GateParameters {
  readonly gate: "gate_silu" | "gate_gelu";
}

const GATE = kernelOf<GateParameters>("elementwise/gate");

Deno.test("a record of parameters makes a kernel once, and what the text binds and overrides is known", () => {
  const kernel = GATE({ gate: "gate_silu" }, { name: "test_gate" });
  assert.equal(GATE({ gate: "gate_silu" }, { name: "test_gate" }), kernel);
  assert.notEqual(GATE({ gate: "gate_gelu" }, { name: "test_gate_gelu" }), kernel);
  // Kernels are joined by their names: one name cannot stand for two texts.
  assert.throws(() => GATE({ gate: "gate_gelu" }, { name: "test_gate" }), /has two sources/);
  assert.deepEqual([kernel.bindings, kernel.constants], [["x", "out"], ["COLS"]]);
});

Deno.test("parameters that are misspelt, missing or of no use are errors of types or when a kernel is made", () => {
  const [wrong, none] = [{ name: "test_wrong" }, { name: "test_none" }];
  assert.throws(
    // @ts-expect-error: gates is no parameter
    () => GATE({ gate: "gate_silu", gates: 1 }, wrong),
    { message: 'elementwise/gate.wgsl: nothing names the parameter "gates"' },
  );
  // @ts-expect-error: gate is missing
  assert.throws(() => GATE({}, none), { message: 'lib/gate.wgsl: no parameter "gate"' });
  // @ts-expect-error: no such gate; the text takes any word
  GATE({ gate: "gate_relu" }, { name: "test_relu" });
  // @ts-expect-error: a file of no parameters takes none
  assert.throws(() => kernelOf("elementwise/add")({ LANES: 8 }, wrong), {
    message: 'elementwise/add.wgsl: nothing names the parameter "LANES"',
  });
});
