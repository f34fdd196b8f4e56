import assert from "node:assert/strict";
import { joined } from "../../kernels/joined.ts";
import { dispatch, kernel } from "../../src/gpu/kernel.ts";

Deno.test("a launch whose main takes something else than a workgroup and an invocation is not joined", () => {
  const code = `@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {}
`;
  const other = kernel("other", code, { bindings: [], constants: [] });
  const launch = dispatch(other, { buffers: {}, constants: {}, workgroups: [1, 4] });
  assert.throws(() => joined([launch, launch], "both"), {
    message: 'Cannot join "other": its main takes global_invocation_id',
  });
});
