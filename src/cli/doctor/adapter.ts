/** What the WebGPU adapter is. Asks navigator.gpu itself: doctor must work where src/gpu cannot. */
import { reason } from "../../errors.ts";
import { type GpuMemory, gpuMemory } from "../../gpu/memory.ts";
import { measureSpeed, type Speed } from "./speed.ts";

/** The adapter that Eyrie would use. */
export interface AdapterReport {
  readonly name: string;
  readonly vendor: string;
  readonly backend: string;
  /** Runs on the CPU. */
  readonly software: boolean;
  /** Smallest and largest subgroup the adapter may pick. */
  readonly subgroupSizes: readonly [number, number];
  /** Those of `WANTED_FEATURES` that a device was granted. */
  readonly granted: readonly string[];
  /** Everything the adapter lists. */
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
  /** Undefined where the system does not report it. */
  readonly memory: GpuMemory | undefined;
  /** Undefined where no device could be opened; `problem` says why. */
  readonly speed: Speed | undefined;
  readonly problem: string | undefined;
}

/** Features that a kernel may use where granted; "subgroups" is granted by Deno without being listed. */
export const WANTED_FEATURES = ["subgroups", "shader-f16", "timestamp-query"] as const;

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
export async function lookAtAdapter(): Promise<AdapterReport | null> {
  silenceLoader();
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) return null;
  const { info } = adapter;
  const limits = limitsOf(adapter.limits);
  const name = info.description || info.device || "unknown";
  const software = isSoftware(info.description, info.isFallbackAdapter);
  return {
    name,
    vendor: vendorName(info.vendor),
    backend: guessBackend(Deno.build.os, limits, Deno.env.get("DENO_WEBGPU_BACKEND")),
    software,
    memory: await gpuMemory({ adapter: name, software }),
    subgroupSizes: [info.subgroupMinSize, info.subgroupMaxSize],
    features: [...adapter.features].toSorted(),
    limits,
    ...await tryDevice(adapter),
  };
}

/** True for the known renderers on the CPU: Mesa's, Google's, Microsoft's. */
export function isSoftware(description: string, fallback: boolean): boolean {
  return fallback || /llvmpipe|lavapipe|swiftshader|warp|basic render/i.test(description);
}

/** The vendor by name; Deno gives its number as a decimal string. */
export function vendorName(vendor: string): string {
  if (!/^\d+$/.test(vendor)) return vendor || "unknown";
  const id = Number(vendor);
  return VENDORS[id] ?? `vendor 0x${id.toString(16)}`;
}

/** OpenGL has few storage buffers: 16 with Mesa; Vulkan drivers have 32 (llvmpipe) and more. */
const MOST_GL_BUFFERS = 16;

/**
 * A guess, as Deno does not report it. OpenGL is recognized by having no limit on bindings (wgpu-hal gles
 * reports the largest u32) but few storage buffers; NVIDIA's Vulkan has no limit on either.
 * Otherwise wgpu takes the system's first choice.
 */
export function guessBackend(
  os: typeof Deno.build.os,
  limits: Readonly<Record<string, number>>,
  forced: string | undefined,
): string {
  const { maxBindingsPerBindGroup, maxStorageBuffersPerShaderStage = 0 } = limits;
  const unlimited = maxBindingsPerBindGroup === 0xffff_ffff;
  if (unlimited && maxStorageBuffersPerShaderStage <= MOST_GL_BUFFERS) return "gl";
  if (forced !== undefined && /^\w+$/.test(forced)) return forced.toLowerCase();
  return os === "darwin" ? "metal" : "vulkan";
}

// Without it the loader of OpenGL writes "XDG_RUNTIME_DIR is invalid" over our report.
function silenceLoader(): void {
  if (Deno.build.os !== "linux" || Deno.env.get("XDG_RUNTIME_DIR")) return;
  Deno.env.set("XDG_RUNTIME_DIR", "/tmp");
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

async function tryDevice(adapter: GPUAdapter): Promise<DeviceReport> {
  const { description, isFallbackAdapter } = adapter.info;
  const software = isSoftware(description, isFallbackAdapter);
  try {
    const device = await openDevice(adapter);
    const granted = WANTED_FEATURES.filter((name) => device.features.has(name as GPUFeatureName));
    try {
      return { granted, speed: await measureSpeed(device, software), problem: undefined };
    } finally {
      // As in src/gpu/device.ts: Mesa's software driver may abort at exit after a destroy.
      if (!software) device.destroy();
    }
  } catch (error) {
    return { granted: [], speed: undefined, problem: reason(error) };
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
