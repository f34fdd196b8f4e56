import { reason, UsageError } from "../errors.ts";
import { guessBackend } from "./backend.ts";

export type AdapterChoice = "high-performance" | "low-power" | "software";

/** What the machine offers, in words for `--json` and `doctor`. */
export interface DeviceInfo {
  readonly adapter: string;
  /** Vendor, device and architecture as WebGPU reports them: what else identifies it. */
  readonly hardware: string;
  readonly backend: string;
  readonly software: boolean;
  /** Features granted, not merely listed. */
  readonly features: readonly string[];
}

/** An open WebGPU device; those of its limits that kernels depend on are the adapter's. */
export interface Gpu extends Disposable {
  readonly device: GPUDevice;
  readonly limits: GPUSupportedLimits;
  readonly info: DeviceInfo;
  /**
   * Throws the first error the device reported since the last call, if any: OutOfMemory where a
   * buffer could not be allocated. What is reported now arrives in a later turn of the event loop.
   */
  check(): void;
}

/** The adapter has no memory for a buffer. */
export class OutOfMemory extends Error {
  override readonly name = "OutOfMemory";
}

const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupsPerDimension",
] as const;

// "subgroups" is granted by Deno although adapter.features does not list it.
const FEATURES = ["subgroups", "shader-f16", "timestamp-query"];

/**
 * Opens the adapter and a device.
 *
 * @throws UsageError when no adapter answers.
 */
export async function openGpu(choice: AdapterChoice = "high-performance"): Promise<Gpu> {
  const adapter = await requestAdapter(choice);
  const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  const device = await requestDevice(adapter, requiredLimits);
  let failure: Error | undefined;
  device.addEventListener("uncapturederror", (event) => {
    event.preventDefault();
    failure ??= reported((event as GPUUncapturedErrorEvent).error);
  });
  const info = describeAdapter(adapter, device);
  return {
    device,
    limits: device.limits,
    info,
    check(): void {
      if (failure === undefined) return;
      const error = failure;
      failure = undefined;
      throw error;
    },
    [Symbol.dispose](): void {
      // Mesa's software driver corrupts its heap now and then when a process ends after a destroy
      // (3 of 485 test runs with Mesa 22.3.6, none of 460 without); the end of the process frees it.
      if (!info.software) device.destroy();
    },
  };
}

function reported(error: GPUError): Error {
  const message = `The GPU reported: ${error.message}`;
  return error instanceof GPUOutOfMemoryError ? new OutOfMemory(message) : new Error(message);
}

/** The EGL loader complains on stderr at every start of a session that has no runtime folder. */
function quietLoader(): void {
  if (Deno.build.os !== "linux" || Deno.env.get("XDG_RUNTIME_DIR")) return;
  Deno.env.set("XDG_RUNTIME_DIR", "/tmp");
}

async function requestAdapter(choice: AdapterChoice): Promise<GPUAdapter> {
  quietLoader();
  const options: GPURequestAdapterOptions = choice === "software"
    ? { forceFallbackAdapter: true }
    : { powerPreference: choice };
  const adapter = await navigator.gpu?.requestAdapter(options);
  if (!adapter) {
    const kind = choice === "software" ? "no software WebGPU adapter" : "no WebGPU adapter";
    throw new UsageError(`Cannot open the GPU: ${kind} was found, run "eyrie doctor --fix"`);
  }
  return adapter;
}

async function requestDevice(
  adapter: GPUAdapter,
  requiredLimits: Record<string, number>,
): Promise<GPUDevice> {
  const listed = FEATURES.filter((name) =>
    name === "subgroups" || adapter.features.has(name as GPUFeatureName)
  );
  const granted = listed as GPUFeatureName[];
  try {
    return await adapter.requestDevice({ requiredFeatures: granted, requiredLimits });
  } catch {
    const requiredFeatures = granted.filter((name) => name as string !== "subgroups");
    try {
      return await adapter.requestDevice({ requiredFeatures, requiredLimits });
    } catch (error) {
      throw new UsageError(
        `Cannot open the GPU "${adapter.info.description}": ${reason(error)}, run "eyrie doctor"`,
      );
    }
  }
}

function describeAdapter(adapter: GPUAdapter, device: GPUDevice): DeviceInfo {
  const name = adapter.info.description || adapter.info.device || "unknown adapter";
  const software = adapter.info.isFallbackAdapter ||
    /llvmpipe|lavapipe|swiftshader|warp|basic render/i.test(name);
  const { vendor, device: model, architecture } = adapter.info;
  const hardware = [vendor, model, architecture].filter(Boolean).join(" ");
  const features = FEATURES.filter((feature) => device.features.has(feature as GPUFeatureName));
  const forced = Deno.env.get("DENO_WEBGPU_BACKEND");
  const backend = guessBackend(Deno.build.os, adapter.limits, forced);
  return { adapter: name, hardware, backend, software, features };
}
