import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { checkPrecision, openGpu } from "../../src/gpu/device.ts";
import {
  attentionForwards,
  draftUnits,
  matrixUnit,
  targetUnits,
  type UnitForwards,
  wantsUnits,
} from "../../src/gpu/matrix_unit.ts";

Deno.test("matrix units: not used on a software adapter unless asked for", () => {
  for (
    const [value, hardware, software] of [
      [undefined, true, false],
      ["", true, false],
      ["auto", true, false],
      ["on", true, true],
      ["prompts", true, true],
      ["bf16", true, true],
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
    new UsageError('Cannot use EYRIE_MATRIX_UNITS "yes": it is auto, on, prompts, bf16, off'),
  );
});

Deno.test("matrix units: attention goes there in prompts with kernels of their own, where sequences may be long, or as the variable says", () => {
  for (
    const [value, ...expected] of [
      ["", "none", "all", "prompts"],
      ["auto", "none", "all", "prompts"],
      ["on", "all", "all", "all"],
      ["off", "none", "none", "none"],
    ] as const
  ) {
    const engines = [[32768, false], [32769, false], [512, true]] as const;
    const found = engines.map(([contextLength, promptKernels]) =>
      attentionForwards({ contextLength, promptKernels }, value)
    );
    assert.deepEqual(found, expected);
  }
  assert.throws(
    () => attentionForwards({ contextLength: 1, promptKernels: false }, "yes"),
    new UsageError('Cannot use EYRIE_ATTENTION_UNITS "yes": it is auto, on, off'),
  );
});

Deno.test("matrix units take a target's matrices in prompts, and in rounds of many rows, or as the variable says", () => {
  const all = (forwards: UnitForwards) => ({
    bf16: forwards,
    dense: forwards,
    experts: forwards,
    fp4Experts: forwards,
  });
  const bf16 = "all";
  const many = { bf16, dense: "all", experts: "prompts", fp4Experts: "all" };
  for (
    const [value, few, more] of [
      ["", all("prompts"), many],
      ["auto", all("prompts"), many],
      ["on", all("all"), all("all")],
      ["prompts", all("prompts"), all("prompts")],
      ["bf16", { ...all("none"), bf16 }, { ...all("none"), bf16 }],
      ["off", all("none"), all("none")],
    ] as const
  ) {
    const taken = [1, 15, 16, 64].map((batch) => targetUnits({ batch, mixture: true }, value));
    assert.deepEqual(taken, [few, few, more, more]);
  }
  // Rounds of a model in bf16 without experts are on units.
  const dense = [1, 16].map((batch) => targetUnits({ batch, mixture: false }, "auto"));
  assert.deepEqual(dense, [{ ...all("prompts"), bf16 }, many]);
  assert.throws(() => targetUnits({ batch: 64, mixture: false }, "yes"), UsageError);
});

Deno.test("matrix units multiply a draft's matrices in all forwards or in none", () => {
  const prompts = targetUnits({ batch: 1, mixture: true }, "auto");
  const none = { dense: "none", experts: "none", fp4Experts: "none" };
  assert.deepEqual(draftUnits(prompts), { bf16: "all", ...none });
  const many = targetUnits({ batch: 16, mixture: true }, "auto");
  assert.deepEqual(draftUnits(many), { ...many, experts: "none" });
  assert.deepEqual(draftUnits(targetUnits({ batch: 1, mixture: true }, "off")), {
    bf16: "none",
    ...none,
  });
});

Deno.test("precision f16 is refused where there are no matrix units", () => {
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  checkPrecision("f16", unit, { webgpu: "dawn" });
  checkPrecision("f32", undefined, { webgpu: "builtin" });
  assert.throws(
    () => checkPrecision("f16", undefined, { webgpu: "builtin" }),
    new UsageError(
      "Cannot use --precision f16: it is for matrix units, " +
        'WebGPU "builtin" has none; --webgpu dawn has them on some GPUs',
    ),
  );
  assert.throws(() => checkPrecision("f16", undefined, { webgpu: "dawn" }), /EYRIE_MATRIX_UNITS/);
});

Deno.test({
  name: "precision f16 is refused before a device is opened, which nobody would close",
  ignore: Deno.env.get("EYRIE_WEBGPU") === "dawn", // one process opens one WebGPU
  async fn() {
    const { requestDevice } = GPUAdapter.prototype;
    let opened = 0;
    GPUAdapter.prototype.requestDevice = function (...options) {
      opened++;
      return requestDevice.apply(this, options);
    };
    try {
      await assert.rejects(openGpu({ webgpu: "builtin", precision: "f16" }), UsageError);
    } finally {
      GPUAdapter.prototype.requestDevice = requestDevice;
    }
    assert.equal(opened, 0);
  },
});

Deno.test("matrix units: the largest of f16 to f32, where subgroups have one size", () => {
  const config = (size: number, resultComponentType = "f32") => ({
    M: size,
    N: size,
    K: size,
    componentType: "f16",
    resultComponentType,
  });
  const info = (min: number, max: number, configs: readonly object[]) =>
    ({
      subgroupMinSize: min,
      subgroupMaxSize: max,
      subgroupMatrixConfigs: configs,
    }) as unknown as GPUAdapterInfo;
  const both = [config(8), config(16), config(32, "f16")];
  assert.deepEqual(matrixUnit(info(32, 32, both)), { m: 16, n: 16, k: 16, lanes: 32 });
  const wide = { ...config(16), N: 32 };
  const narrow = { ...config(16), N: 8 };
  assert.deepEqual(
    matrixUnit(info(32, 32, [narrow, ...both])),
    { m: 16, n: 16, k: 16, lanes: 32, narrow: 8 },
  );
  assert.deepEqual(
    matrixUnit(info(32, 32, [wide, ...both, { ...narrow, K: 8 }])),
    { m: 16, n: 32, k: 16, lanes: 32, narrow: 16 },
    "of the same m and k",
  );
  assert.equal(matrixUnit(info(8, 32, both)), undefined);
  assert.equal(matrixUnit(info(32, 32, [])), undefined);
});
