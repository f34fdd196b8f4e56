/** Describes the WebGPU adapter. It opens no `Gpu`, because doctor must work where that fails. */
import { isSoftware } from "../../gpu/device.ts";
import { MATRIX_FEATURE, type MatrixUnit, matrixUnit, wantsUnits } from "../../gpu/matrix_unit.ts";
import { type GpuMemory, gpuMemory } from "../../gpu/memory.ts";
import type { WebGpu } from "../../gpu/webgpu.ts";
import { measureSpeed, type Speed } from "./speed.ts";

/** The adapter that Eyrie would use. */
export interface AdapterReport {
  readonly name: string;
  readonly vendor: string;
  readonly backend: Backend;
  /** Runs on the CPU. */
  readonly software: boolean;
  /** Smallest and largest subgroup the adapter may pick. */
  readonly subgroupSizes: readonly [number, number];
  /** The features of `WANTED_FEATURES` that a device was granted. */
  readonly granted: readonly string[];
  /** Everything the adapter lists. */
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
  /** The matrix unit that kernels take, and whether they do; undefined where there is none. */
  readonly matrixUnit: { readonly unit: MatrixUnit; readonly used: boolean } | undefined;
  /** Undefined where the system does not report it. */
  readonly memory: GpuMemory | undefined;
  /** Undefined where no device could be opened; `problem` says why. */
  readonly speed: Speed | undefined;
  readonly problem: string | undefined;
}

/** The driver API under the adapter (Vulkan, Metal, ...). Deno does not report it. */
export interface Backend {
  readonly name: string;
  /** The same adapter answers where that backend alone is asked, or no other can. */
  readonly certain: boolean;
  /** DENO_WEBGPU_BACKEND chose it. */
  readonly forced: boolean;
  /** The adapter that Vulkan alone gives, where another backend was taken; absent = none. */
  readonly vulkan?: string;
}

/** Features that a kernel may use where granted; "subgroups" is granted by Deno without being listed. */
const WANTED_FEATURES = ["subgroups", "shader-f16", "timestamp-query"] as const;

// PCI vendor numbers, and the ones that Khronos gives to drivers without a PCI device.
const VENDORS: Readonly<Record<number, string>> = {
  0x1002: "AMD",
  0x1010: "Imagination",
  0x106b: "Apple",
  0x10de: "NVIDIA",
  0x13b5: "ARM",
  0x1414: "Microsoft",
  0x5143: "Qualcomm",
  0x8086: "Intel",
  0x10005: "Mesa",
};

/** Looks at the adapter and measures a device of it; null where none answers. */
export async function lookAtAdapter(webgpu: WebGpu): Promise<AdapterReport | null> {
  const adapter = await requestAdapter(webgpu);
  if (adapter === null) return null;
  const { info } = adapter;
  const limits = limitsOf(adapter.limits);
  const name = webgpu.adapterName(info);
  const software = isSoftware(name, info.isFallbackAdapter);
  return {
    name,
    vendor: vendorName(info.vendor),
    backend: await findBackend(webgpu, adapter),
    software,
    memory: await gpuMemory({ adapter: name, software }),
    subgroupSizes: [info.subgroupMinSize, info.subgroupMaxSize],
    features: [...adapter.features].toSorted(),
    limits,
    matrixUnit: unitOf(adapter, software),
    ...await tryDevice(webgpu, adapter, software),
  };
}

function unitOf({ features, info }: GPUAdapter, software: boolean): AdapterReport["matrixUnit"] {
  const unit = features.has(MATRIX_FEATURE as GPUFeatureName) ? matrixUnit(info) : undefined;
  return unit && { unit, used: wantsUnits(software) };
}

/** The vendor by name; Deno gives its number as a decimal string. */
export function vendorName(vendor: string): string {
  if (!/^\d+$/.test(vendor)) return vendor || "unknown";
  const id = Number(vendor);
  return VENDORS[id] ?? `vendor 0x${id.toString(16)}`;
}

async function requestAdapter(webgpu: WebGpu): Promise<GPUAdapter | null> {
  return await webgpu.requestAdapter({ powerPreference: "high-performance" });
}

const CHOICE = "DENO_WEBGPU_BACKEND";

/** Backends that may answer where nothing is forced. */
const CANDIDATES: Partial<Record<typeof Deno.build.os, readonly string[]>> = {
  darwin: ["metal"],
  windows: ["dx12", "vulkan", "gl"],
  linux: ["vulkan", "gl"],
};

/**
 * Finds the backend that gave the adapter. Deno 2.9.6 reads DENO_WEBGPU_BACKEND at every request for an adapter, and
 * chooses among the backends that it opened at the first request. So each backend is asked alone, and the one that
 * gives the same adapter is taken.
 */
async function findBackend(webgpu: WebGpu, adapter: GPUAdapter): Promise<Backend> {
  const guess = webgpu.backendOf(adapter);
  if (webgpu.name !== "builtin") return { name: guess, certain: true, forced: false };
  const forced = Deno.env.get(CHOICE);
  const { os } = Deno.build;
  if (forced !== undefined) return { name: guess, certain: /^\w+$/.test(forced), forced: true };
  const candidates = CANDIDATES[os] ?? [];
  if (candidates.length < 2) {
    return { name: guess, certain: candidates.length === 1, forced: false };
  }
  const found = new Map<string, GPUAdapter>();
  try {
    for (const name of candidates) {
      Deno.env.set(CHOICE, name);
      const alone = await requestAdapter(webgpu);
      if (alone !== null) found.set(name, alone);
    }
  } finally {
    Deno.env.delete(CHOICE);
  }
  const same = [...found].filter(([, each]) => described(each) === described(adapter));
  const [name = guess] = same.map(([name]) => name);
  const vulkan = name === "vulkan" ? undefined : found.get("vulkan")?.info;
  return {
    name,
    certain: same.length === 1,
    forced: false,
    ...vulkan ? { vulkan: vulkan.description || vulkan.device } : {},
  };
}

/** Identifies an adapter. The limits are included, because drivers of one device differ in them. */
function described({ info, limits, features }: GPUAdapter): string {
  const { vendor, architecture, device, description } = info;
  const names = [...features].toSorted();
  return JSON.stringify([vendor, architecture, device, description, limitsOf(limits), names]);
}

function limitsOf(limits: GPUSupportedLimits): Record<string, number> {
  const found: Record<string, number> = {};
  // The limits are getters on the prototype, so no Object.entries.
  // deno-lint-ignore guard-for-in
  for (const name in limits) {
    const value = limits[name as keyof GPUSupportedLimits];
    if (typeof value === "number") found[name] = value;
  }
  return found;
}

type DeviceReport = Pick<AdapterReport, "granted" | "speed" | "problem">;

async function tryDevice(
  webgpu: WebGpu,
  adapter: GPUAdapter,
  software: boolean,
): Promise<DeviceReport> {
  try {
    const device = await openDevice(adapter);
    const granted = WANTED_FEATURES.filter((name) => device.features.has(name as GPUFeatureName));
    try {
      return { granted, speed: await measureSpeed(webgpu, device, software), problem: undefined };
    } finally {
      // As in src/gpu/device.ts: Mesa's software driver may abort at exit after a destroy.
      if (!software) device.destroy();
    }
  } catch (error) {
    return {
      granted: [],
      speed: undefined,
      problem: error instanceof Error ? error.message : String(error),
    };
  }
}

async function openDevice(adapter: GPUAdapter): Promise<GPUDevice> {
  const listed = WANTED_FEATURES.filter((name) =>
    name !== "subgroups" && adapter.features.has(name as GPUFeatureName)
  ) as GPUFeatureName[];
  try {
    return await adapter.requestDevice({
      requiredFeatures: [...listed, "subgroups" as GPUFeatureName],
    });
  } catch {
    return await adapter.requestDevice({ requiredFeatures: listed });
  }
}
