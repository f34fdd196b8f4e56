import { GpuFailure, reason, UsageError } from "../errors.ts";
import { MATRIX_FEATURE, type MatrixUnit, matrixUnit, wantsUnits } from "./matrix_unit.ts";
import type { Precision } from "./matrices_on_units.ts";
import { openWebGpu, type WebGpu, type WebGpuName } from "./webgpu.ts";

export type AdapterChoice = "high-performance" | "low-power" | "software";

/** Which device to open. */
export interface GpuChoice {
  readonly adapter?: AdapterChoice;
  /** Default: EYRIE_WEBGPU, else the built-in one. */
  readonly webgpu?: WebGpuName;
  /** Precision of rows on matrix units; f16 is refused on a device without them. Default f32. */
  readonly precision?: Precision;
}

/** The opened device, described for `--json` and `doctor`. */
export interface DeviceInfo {
  readonly webgpu: WebGpuName;
  readonly adapter: string;
  /** Vendor, device and architecture as WebGPU reports them, to identify it beside its name. */
  readonly hardware: string;
  readonly backend: string;
  readonly software: boolean;
  /** Features granted, not merely listed. */
  readonly features: readonly string[];
  /**
   * Subgroup size, where all subgroups have the same. Absent on Dawn too: there WGSL needs a line to use subgroups
   * that Deno's compiler refuses.
   */
  readonly subgroup?: number;
}

/** An open WebGPU device. The limits that kernels depend on are raised to the adapter's. */
export interface Gpu extends Disposable {
  readonly device: GPUDevice;
  readonly limits: GPUSupportedLimits;
  readonly info: DeviceInfo;
  /** Undefined where the device was granted none. */
  readonly matrixUnit: MatrixUnit | undefined;
  /**
   * Throws the first error the device reported since the last call, if any: OutOfMemory where a
   * buffer could not be allocated. An error that the device reports now arrives in a later turn of the event loop.
   */
  check(): void;
  /** Maps a buffer for reading once all that was submitted is done. */
  readonly mapped: WebGpu["mapped"];
  /** Waits for pipelines that are compiled in parallel. */
  readonly settled: WebGpu["settled"];
  /** Bounds the memory of pending uploads: waits for them where WebGPU can wait within a call. */
  drain(): void;
}

/** Bytes of the largest buffer that can be bound whole. */
export function largestBinding(
  limits: Pick<GPUSupportedLimits, "maxStorageBufferBindingSize" | "maxBufferSize">,
): number {
  return Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
}

/** The adapter has no memory for a buffer. */
export class OutOfMemory extends GpuFailure {
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
const FEATURES = ["subgroups", "shader-f16", "timestamp-query", MATRIX_FEATURE];

/**
 * Opens the adapter and a device.
 *
 * @throws UsageError when no adapter answers, the WebGPU that is asked for is not there, or it has no
 * matrix units for f16.
 */
export async function openGpu(
  { adapter: choice = "high-performance", webgpu: name, precision = "f32" }: GpuChoice = {},
): Promise<Gpu> {
  const webgpu = openWebGpu(name);
  const adapter = await requestAdapter(webgpu, choice);
  const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  const software = isSoftware(webgpu.adapterName(adapter.info), adapter.info.isFallbackAdapter);
  const units = wantsUnits(software) && adapter.features.has(MATRIX_FEATURE as GPUFeatureName);
  const unit = units ? matrixUnit(adapter.info) : undefined;
  checkPrecision(precision, unit, { webgpu: webgpu.name }); // before there is a device to destroy
  const device = await requestDevice(adapter, requiredLimits, units);
  let failure: Error | undefined;
  device.addEventListener("uncapturederror", (event) => {
    event.preventDefault();
    failure ??= reported(webgpu, (event as GPUUncapturedErrorEvent).error);
  });
  const info = describeAdapter(webgpu, adapter, device);
  return {
    device,
    limits: device.limits,
    info,
    matrixUnit: unit,
    check(): void {
      if (failure === undefined) return;
      const error = failure;
      failure = undefined;
      throw error;
    },
    async mapped(buffer, wait) {
      try {
        return await webgpu.mapped(buffer, wait);
      } catch (error) {
        throw await lossOf(device) ?? error;
      }
    },
    settled: webgpu.settled,
    drain: () => webgpu.drain(device.queue),
    [Symbol.dispose](): void {
      // Mesa's software driver corrupts its heap now and then when a process ends after a destroy
      // (3 of 485 test runs with Mesa 22.3.6, none of 460 without); the end of the process frees it.
      if (!info.software) device.destroy();
    },
  };
}

/** What happened to a device that is lost, undefined where it is not: WebGPU only says that a buffer is not mapped. */
export async function lossOf(
  { lost }: Pick<GPUDevice, "lost">,
): Promise<GpuFailure | undefined> {
  const soon = new Promise<void>((resolve) => setTimeout(resolve, 100));
  const info = await Promise.race([lost, soon]);
  if (!info) return undefined;
  const why = info.message || info.reason || "no reason is given";
  return new GpuFailure(`The GPU device was lost: ${why}`, { cause: info });
}

/** @throws UsageError for f16 where the device has no matrix units, or they are not used. */
export function checkPrecision(
  precision: Precision,
  unit: MatrixUnit | undefined,
  { webgpu }: Pick<DeviceInfo, "webgpu">,
): void {
  if (precision !== "f16" || unit !== undefined) return;
  const why = webgpu === "builtin"
    ? `WebGPU "builtin" has none; --webgpu dawn has them on some GPUs`
    : `the device has none, or does not use them (EYRIE_MATRIX_UNITS)`;
  throw new UsageError(`Cannot use --precision f16: it is for matrix units, ${why}`);
}

function reported({ isOutOfMemory }: WebGpu, error: GPUError): Error {
  const message = `The GPU reported: ${error.message}`;
  return isOutOfMemory(error) ? new OutOfMemory(message) : new Error(message);
}

async function requestAdapter(webgpu: WebGpu, choice: AdapterChoice): Promise<GPUAdapter> {
  const options: GPURequestAdapterOptions = choice === "software"
    ? { forceFallbackAdapter: true }
    : { powerPreference: choice };
  const adapter = await webgpu.requestAdapter(options);
  if (!adapter) {
    const own = choice === "software" ? "no software WebGPU adapter" : "no WebGPU adapter";
    const [kind, advice] = webgpu.name === "builtin"
      ? [own, "--fix"]
      : [`${own} for "${webgpu.name}"`, `--webgpu ${webgpu.name}`];
    throw new UsageError(`Cannot open the GPU: ${kind} was found, run "eyrie doctor ${advice}"`);
  }
  return adapter;
}

async function requestDevice(
  adapter: GPUAdapter,
  requiredLimits: Record<string, number>,
  units: boolean,
): Promise<GPUDevice> {
  const listed = FEATURES.filter((name) =>
    name === "subgroups" ||
    (adapter.features.has(name as GPUFeatureName) && (units || name !== MATRIX_FEATURE))
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

function describeAdapter(
  webgpu: WebGpu,
  adapter: GPUAdapter,
  device: GPUDevice,
): DeviceInfo {
  const name = webgpu.adapterName(adapter.info);
  const { vendor, device: model, architecture, subgroupMinSize, subgroupMaxSize } = adapter.info;
  const features = FEATURES.filter((feature) => device.features.has(feature as GPUFeatureName));
  const alike = subgroupMinSize > 0 && subgroupMinSize === subgroupMaxSize;
  const usable = webgpu.name === "builtin" && features.includes("subgroups") && alike;
  return {
    webgpu: webgpu.name,
    adapter: name,
    hardware: [vendor, model, architecture].filter(Boolean).join(" "),
    backend: webgpu.backendOf(adapter),
    software: isSoftware(name, adapter.info.isFallbackAdapter),
    features,
    ...usable ? { subgroup: subgroupMaxSize } : {},
  };
}

/** True for the known renderers on the CPU: Mesa's, Google's, Microsoft's. */
export function isSoftware(name: string, fallback: boolean): boolean {
  return fallback || /llvmpipe|lavapipe|swiftshader|warp|basic render/i.test(name);
}
