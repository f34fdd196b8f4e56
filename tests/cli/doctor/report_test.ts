import { deepEqual, doesNotMatch, equal, match } from "node:assert/strict";
import { type AdapterReport, vendorName } from "../../../src/cli/doctor/adapter.ts";
import {
  byteText,
  type DoctorReport,
  isHealthy,
  renderReport,
  reportJson,
} from "../../../src/cli/doctor/report.ts";
import { gigabytesPerSecond } from "../../../src/cli/doctor/speed.ts";
import { isSoftware } from "../../../src/gpu/device.ts";

const ADAPTER: AdapterReport = {
  name: "NVIDIA H200",
  vendor: "NVIDIA",
  backend: { name: "vulkan", certain: true, forced: false },
  software: false,
  subgroupSizes: [32, 32],
  granted: ["subgroups", "shader-f16"],
  features: ["shader-f16"],
  limits: { maxBufferSize: 2 ** 31, maxStorageBufferBindingSize: 128 * 2 ** 20 },
  matrixUnit: undefined,
  memory: { total: 16 * 2 ** 30, free: 15 * 2 ** 30 },
  speed: {
    readbackMs: 0.0284,
    awaitedReadbackMs: 11.5,
    copyGBps: 1980.25,
    uploadGBps: 6.3,
  },
  problem: undefined,
};

const REPORT: DoctorReport = {
  deno: { version: "2.9.6", v8: "15.0", typescript: "6.0.3", target: "x86_64-unknown-linux-gnu" },
  system: "Debian GNU/Linux 12 (bookworm)",
  webgpu: "builtin",
  adapter: ADAPTER,
  caches: [
    { name: "Hugging Face models", path: "/c/hub", exists: false, freeBytes: 2 ** 30 },
    { name: "Deno modules", path: undefined, exists: false, freeBytes: undefined },
  ],
  tuning: {
    path: "/c/eyrie/tuning.json",
    adapters: [{ adapter: "NVIDIA H200, vulkan, 570.1", launches: 40 }],
    problem: undefined,
  },
  costs: {
    path: "/c/eyrie/costs.json",
    adapters: [{ adapter: "NVIDIA H200, vulkan, 570.1", tables: 2 }],
    problem: undefined,
  },
  config: { path: "/home/me/.config/eyrie.json", flags: 3 },
  fix: { kind: "none" },
};

function lastLine(report: DoctorReport): string {
  return renderReport(report).trimEnd().split("\n").at(-1) ?? "";
}

Deno.test("the report: one fact a line, the verdict last", () => {
  equal(
    renderReport(REPORT),
    `deno       2.9.6 (v8 15.0, typescript 6.0.3, x86_64-unknown-linux-gnu)
system     Debian GNU/Linux 12 (bookworm)
webgpu     builtin
adapter    NVIDIA H200
           hardware, NVIDIA, backend vulkan
features   subgroups, shader-f16; subgroups of 32
limits     buffer 2 GiB, binding 128 MiB, 0 storage buffers, workgroup 0 threads and 0 B
memory     15 GiB free of 16 GiB
readback   0.028 ms a read, 11.5 ms when awaited
copy       1980.3 GB/s on the device, 6.3 GB/s upload
caches     Hugging Face models: /c/hub (not there yet, 1 GiB free)
           Deno modules: no home folder known
tuning     /c/eyrie/tuning.json
           40 launches measured on NVIDIA H200, vulkan, 570.1
costs      /c/eyrie/costs.json
           rounds of 2 models measured on NVIDIA H200, vulkan, 570.1
config     /home/me/.config/eyrie.json, which sets 3 flags
verdict    ready
`,
  );
});

Deno.test("a file of measurements that is absent or cannot be read is told in its line", () => {
  const path = "/c/eyrie/costs.json";
  const text = (costs: DoctorReport["costs"]) => renderReport({ ...REPORT, costs });
  match(
    text({ path, adapters: [], problem: undefined }),
    /^costs {6}\/c\/eyrie\/costs\.json \(nothing measured yet\)$/m,
  );
  match(text({ path, adapters: [], problem: "cannot use it" }), /^costs {6}cannot use it$/m);
  match(
    text({ path: undefined, adapters: [], problem: undefined }),
    /^costs {6}no home folder known: not kept$/m,
  );
});

Deno.test("the verdict says what is wrong and what helps", () => {
  const command = "apt-get install -y x";
  const none = (fix: DoctorReport["fix"]): string => lastLine({ ...REPORT, adapter: null, fix });
  match(
    none({ kind: "install", command }),
    /no WebGPU adapter; "eyrie doctor --fix" runs: apt-get/,
  );
  match(none({ kind: "run", command }), /run: apt-get install/);
  match(none({ kind: "advice", text: "buy one" }), /buy one/);
  const broken = { ...REPORT, adapter: { ...ADAPTER, speed: undefined, problem: "lost" } };
  match(lastLine(broken), /opens no device: lost/);
  doesNotMatch(renderReport(broken), /readback/);
  match(lastLine({ ...REPORT, adapter: { ...ADAPTER, software: true } }), /ready, without a GPU/);
  const backed = (backend: Partial<AdapterReport["backend"]>, fix = REPORT.fix) => ({
    ...REPORT,
    fix,
    adapter: { ...ADAPTER, backend: { ...ADAPTER.backend, ...backend } },
  });
  equal(
    lastLine(backed({ name: "gl" }, { kind: "run", command })),
    `verdict    OpenGL answers but no Vulkan driver; Vulkan is faster: for the driver run: ${command}`,
  );
  equal(
    lastLine(backed({ name: "gl", vulkan: "llvmpipe" })),
    'verdict    ready with gl; DENO_WEBGPU_BACKEND=vulkan takes "llvmpipe" instead',
  );
  equal(lastLine(backed({ name: "gl", forced: true })), "verdict    ready");
  match(renderReport(backed({ certain: false })), /backend vulkan \(a guess\)\n/);
  match(renderReport(backed({ forced: true })), /backend vulkan \(by DENO_WEBGPU_BACKEND\)\n/);
  deepEqual([REPORT, broken, { ...REPORT, adapter: null }].map(isHealthy), [true, false, false]);
});

Deno.test("--json holds plain values and null for what is not known", () => {
  const json = JSON.parse(JSON.stringify(reportJson(REPORT)));
  equal(json.healthy, true);
  equal(json.adapter.speed.readback_ms, 0.0284);
  deepEqual(json.adapter.memory, { total_bytes: 16 * 2 ** 30, free_bytes: 15 * 2 ** 30 });
  const untold = reportJson({ ...REPORT, adapter: { ...ADAPTER, memory: undefined } });
  equal(JSON.parse(JSON.stringify(untold)).adapter.memory, null);
  deepEqual(json.caches[1], { name: "Deno modules", path: null, exists: false, free_bytes: null });
  equal(reportJson({ ...REPORT, adapter: null })["adapter"], null);
  deepEqual(reportJson(REPORT), json); // nothing that JSON would drop
});

Deno.test("adapters are known by what little Deno tells of them", () => {
  deepEqual(["4318", "65541", "4660", "apple", ""].map(vendorName), [
    "NVIDIA",
    "Mesa",
    "vendor 0x1234",
    "apple",
    "unknown",
  ]);
  equal(isSoftware("llvmpipe (LLVM 15.0.6, 256 bits)", false), true);
  equal(isSoftware("Microsoft Basic Render Driver", false), true);
  equal(isSoftware("NVIDIA H200", false), false);
});

Deno.test("sizes and rates", () => {
  deepEqual([0, 512, 2 ** 20, 1.5 * 2 ** 30].map(byteText), ["0 B", "512 B", "1 MiB", "1.5 GiB"]);
  equal(gigabytesPerSecond(4e6, 2), 2);
  equal(Number.isFinite(gigabytesPerSecond(4e6, -1)), true);
});

Deno.test("matrix units: which there are, and whether they are used", () => {
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  const at = (used: boolean) => ({
    ...REPORT,
    adapter: { ...ADAPTER, matrixUnit: { unit, used } },
  });
  match(renderReport(at(true)), /units {6}matrices of f16 to f32, 16x16x16: used\n/);
  match(renderReport(at(false)), /16x16x16: not used, EYRIE_MATRIX_UNITS=on does\n/);
  doesNotMatch(renderReport(REPORT), /^units/m);
  const { adapter } = reportJson(at(true)) as { adapter: { matrix_unit: unknown } };
  deepEqual(adapter.matrix_unit, { unit, used: true });
});
