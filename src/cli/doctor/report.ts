/** The doctor's report, for people and for programs. Pure. */
import type { AdapterReport } from "./adapter.ts";
import { DAWN_PACKAGE } from "../../gpu/dawn.ts";
import type { WebGpuName } from "../../gpu/webgpu.ts";
import type { CostsContents } from "../../engine/tune/costs/costs_file.ts";
import type { TuningContents } from "../../engine/tune/tuning_file.ts";
import type { CacheState } from "./caches.ts";
import type { Fix } from "./machine.ts";
import type { Speed } from "./speed.ts";

/** Everything the doctor looked at. */
export interface DoctorReport {
  readonly deno: {
    readonly version: string;
    readonly v8: string;
    readonly typescript: string;
    readonly target: string;
  };
  /** What was asked for the adapter. */
  readonly webgpu: WebGpuName;
  /** The operating system, for people. */
  readonly system: string;
  readonly adapter: AdapterReport | null;
  readonly caches: readonly CacheState[];
  /** What --autotune measured here. */
  readonly tuning: TuningContents;
  /** What rounds cost, as `eyrie profile` and adaptive policies measured it here. */
  readonly costs: CostsContents;
  readonly config: ConfigState;
  readonly fix: Fix;
}

/** The config file. */
export interface ConfigState {
  /** Where it is looked for; undefined where there is no home folder. */
  readonly path: string | undefined;
  /** Flags that it sets; undefined where there is no file. */
  readonly flags: number | undefined;
}

const LABEL_WIDTH = 11;

/** True where Eyrie can run: an adapter answered and opened a device. */
export function isHealthy(report: DoctorReport): boolean {
  return report.adapter !== null && report.adapter.problem === undefined;
}

/** One fact a line; the last line is the verdict. */
export function renderReport(report: DoctorReport): string {
  const { deno, adapter } = report;
  const lines = [
    line("deno", `${deno.version} (v8 ${deno.v8}, typescript ${deno.typescript}, ${deno.target})`),
    line("system", report.system),
    line("webgpu", webgpuText(report.webgpu)),
    ...(adapter === null ? [line("adapter", "none")] : adapterLines(adapter)),
    ...report.caches.map((cache, i) => line(i === 0 ? "caches" : "", cacheText(cache))),
    ...measuredLines(
      "tuning",
      report.tuning,
      ({ adapter, launches }) => `${launches} launches measured on ${adapter}`,
    ),
    ...measuredLines(
      "costs",
      report.costs,
      ({ adapter, tables }) =>
        `rounds of ${tables} ${tables === 1 ? "model" : "models"} measured on ${adapter}`,
    ),
    line("config", configText(report.config)),
    line("verdict", verdict(report)),
  ];
  return `${lines.join("\n")}\n`;
}

/** The same facts for `--json`; limits and features keep WebGPU's spelling. */
export function reportJson(report: DoctorReport): Record<string, unknown> {
  const { adapter } = report;
  return {
    healthy: isHealthy(report),
    deno: report.deno,
    system: report.system,
    webgpu: report.webgpu,
    adapter: adapter && adapterJson(adapter),
    caches: report.caches.map((cache) => ({
      name: cache.name,
      path: cache.path ?? null,
      exists: cache.exists,
      free_bytes: cache.freeBytes ?? null,
    })),
    tuning: {
      path: report.tuning.path ?? null,
      adapters: report.tuning.adapters,
      problem: report.tuning.problem ?? null,
    },
    costs: {
      path: report.costs.path ?? null,
      adapters: report.costs.adapters,
      problem: report.costs.problem ?? null,
    },
    config: { path: report.config.path ?? null, flags: report.config.flags ?? null },
    fix: report.fix,
  };
}

function configText({ path, flags }: ConfigState): string {
  if (path === undefined) return "none, as there is no home folder";
  if (flags === undefined) return `none, it would be ${path}`;
  return `${path}, which sets ${flags} ${flags === 1 ? "flag" : "flags"}`;
}

/** Bytes in the largest binary unit of which there is at least one. */
export function byteText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  return `${Number((bytes / 1024 ** power).toFixed(1))} ${units[power]}`;
}

function adapterLines(adapter: AdapterReport): string[] {
  const { limits } = adapter;
  const [smallest, largest] = adapter.subgroupSizes;
  const kind = adapter.software ? "software: runs on the CPU" : "hardware";
  const subgroups = smallest === largest ? `${smallest}` : `${smallest} to ${largest}`;
  const limit = (name: string): number => limits[name] ?? 0;
  return [
    line("adapter", adapter.name),
    line("", `${kind}, ${adapter.vendor}, backend ${backendText(adapter.backend)}`),
    line("features", `${adapter.granted.join(", ") || "none"}; subgroups of ${subgroups}`),
    ...unitLines(adapter.matrixUnit),
    line(
      "limits",
      `buffer ${byteText(limit("maxBufferSize"))}, ` +
        `binding ${byteText(limit("maxStorageBufferBindingSize"))}, ` +
        `${limit("maxStorageBuffersPerShaderStage")} storage buffers, ` +
        `workgroup ${limit("maxComputeInvocationsPerWorkgroup")} threads and ` +
        byteText(limit("maxComputeWorkgroupStorageSize")),
    ),
    line("memory", memoryText(adapter.memory)),
    ...(adapter.speed ? speedLines(adapter.speed) : []),
  ];
}

function unitLines(found: AdapterReport["matrixUnit"]): string[] {
  if (found === undefined) return [];
  const { unit: { m, n, k }, used } = found;
  const use = used ? "used" : "not used, EYRIE_MATRIX_UNITS=on does";
  return [line("units", `matrices of f16 to f32, ${m}x${n}x${k}: ${use}`)];
}

function webgpuText(name: WebGpuName): string {
  return name === "dawn" ? `dawn (${DAWN_PACKAGE})` : name;
}

function backendText({ name, certain, forced }: AdapterReport["backend"]): string {
  if (!certain) return `${name} (a guess)`;
  return forced ? `${name} (by DENO_WEBGPU_BACKEND)` : name;
}

function memoryText(memory: AdapterReport["memory"]): string {
  if (memory === undefined) return "unknown: WebGPU does not report it";
  return `${byteText(memory.free)} free of ${byteText(memory.total)}`;
}

function speedLines(speed: Speed): string[] {
  return [
    line(
      "readback",
      `${speed.readbackMs.toFixed(3)} ms a read, ` +
        `${speed.awaitedReadbackMs.toFixed(1)} ms when awaited`,
    ),
    line(
      "copy",
      `${speed.copyGBps.toFixed(1)} GB/s on the device, ${speed.uploadGBps.toFixed(1)} GB/s upload`,
    ),
  ];
}

function cacheText(cache: CacheState): string {
  if (cache.path === undefined) return `${cache.name}: no home folder known`;
  const free = cache.freeBytes === undefined ? "" : `, ${byteText(cache.freeBytes)} free`;
  return `${cache.name}: ${cache.path} (${cache.exists ? "exists" : "not there yet"}${free})`;
}

/** A file of what was measured here, with a line for each adapter. */
function measuredLines<OfAdapter>(
  label: string,
  { path, adapters, problem }: Pick<TuningContents, "path" | "problem"> & {
    readonly adapters: readonly OfAdapter[];
  },
  text: (of: OfAdapter) => string,
): string[] {
  if (path === undefined) return [line(label, "no home folder known: not kept")];
  if (adapters.length === 0) return [line(label, problem ?? `${path} (nothing measured yet)`)];
  return [line(label, problem ?? path), ...adapters.map((each) => line("", text(each)))];
}

function verdict({ adapter, fix }: DoctorReport): string {
  if (adapter === null) return `no WebGPU adapter; ${fixText(fix)}`;
  if (adapter.problem !== undefined) return `the adapter opens no device: ${adapter.problem}`;
  const { backend } = adapter;
  if (backend.vulkan !== undefined) {
    return `ready with ${backend.name}; DENO_WEBGPU_BACKEND=vulkan takes "${backend.vulkan}" instead`;
  }
  if (backend.name === "gl" && !backend.forced) {
    return `OpenGL answers but no Vulkan driver; Vulkan is faster: ${fixText(fix)}`;
  }
  return adapter.software ? "ready, without a GPU: small models only" : "ready";
}

function fixText(fix: Fix): string {
  switch (fix.kind) {
    case "install":
      return `"eyrie doctor --fix" runs: ${fix.command}`;
    case "run":
      return `for the driver run: ${fix.command}`;
    case "advice":
      return fix.text;
    case "none":
      return "nothing known helps";
    default:
      return fix satisfies never;
  }
}

function adapterJson(adapter: AdapterReport): Record<string, unknown> {
  const { speed, memory } = adapter;
  return {
    name: adapter.name,
    vendor: adapter.vendor,
    backend: adapter.backend.name,
    backend_certain: adapter.backend.certain,
    software: adapter.software,
    subgroup_sizes: adapter.subgroupSizes,
    granted: adapter.granted,
    features: adapter.features,
    limits: adapter.limits,
    matrix_unit: adapter.matrixUnit ?? null,
    memory: memory ? { total_bytes: memory.total, free_bytes: memory.free } : null,
    speed: speed
      ? {
        readback_ms: speed.readbackMs,
        awaited_readback_ms: speed.awaitedReadbackMs,
        copy_gb_per_s: speed.copyGBps,
        upload_gb_per_s: speed.uploadGBps,
      }
      : null,
    problem: adapter.problem ?? null,
  };
}

function line(label: string, text: string): string {
  return `${label.padEnd(LABEL_WIDTH)}${text}`;
}
