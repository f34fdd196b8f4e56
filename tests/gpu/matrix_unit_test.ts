import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { matrixUnit, wantsUnits } from "../../src/gpu/matrix_unit.ts";

Deno.test("matrix units: not used on a software adapter unless asked for", () => {
  for (
    const [value, hardware, software] of [
      [undefined, true, false],
      ["", true, false],
      ["auto", true, false],
      ["on", true, true],
      ["off", false, false],
    ] as const
  ) {
    assert.deepEqual([wantsUnits(false, value ?? ""), wantsUnits(true, value ?? "")], [
      hardware,
      software,
    ]);
  }
  assert.throws(
    () => wantsUnits(false, "yes"),
    new UsageError('Cannot use EYRIE_MATRIX_UNITS "yes": it is auto, on, off'),
  );
});

Deno.test("matrix units: the largest of f16 to f32, where subgroups have one size", () => {
  const config = (size: number, resultComponentType = "f32") => ({
    ...{ M: size, N: size, K: size, componentType: "f16", resultComponentType },
  });
  const info = (min: number, max: number, configs: readonly object[]) =>
    ({
      subgroupMinSize: min,
      subgroupMaxSize: max,
      subgroupMatrixConfigs: configs,
    }) as unknown as GPUAdapterInfo;
  const both = [config(8), config(16), config(32, "f16")];
  assert.deepEqual(matrixUnit(info(32, 32, both)), { m: 16, n: 16, k: 16, lanes: 32 });
  assert.equal(matrixUnit(info(8, 32, both)), undefined);
  assert.equal(matrixUnit(info(32, 32, [])), undefined);
});
