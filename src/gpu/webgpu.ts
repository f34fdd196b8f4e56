/** Opens one of the two WebGPU implementations, Deno's own or Dawn. All that differs between them is in this file. */
import { UsageError } from "../errors.ts";
import { guessBackend } from "./backend.ts";
import { loadDawn } from "./dawn.ts";
import { catchPolls, mappedByPolling, settledByPolling } from "./dawn_events.ts";
import { collectorOfV8, handlesOfV8, openCollector } from "./dawn_garbage.ts";

/** Deno's own WebGPU (wgpu), or Google's Dawn. */
export type WebGpuName = "builtin" | "dawn";

const NAMES: readonly WebGpuName[] = ["builtin", "dawn"];

/** The environment variable that chooses the WebGPU if the caller does not. */
const VARIABLE = "EYRIE_WEBGPU";

/** What the caller knows about the work it waits for. */
export interface Wait {
  /** Whether the work takes tens of milliseconds, so that the host may do other work meanwhile; default false. */
  readonly lasting?: boolean | undefined;
  /** Milliseconds from now in which the device is certainly still busy; default 0. */
  readonly busyMs?: number | undefined;
  /** Called if the device is still busy at the first poll; never called on a WebGPU that is not polled. */
  readonly stillBusy?: (() => void) | undefined;
}

/** A WebGPU implementation. A process must open devices of one implementation only: both together crash. */
export interface WebGpu {
  readonly name: WebGpuName;
  requestAdapter(options: GPURequestAdapterOptions): Promise<GPUAdapter | null>;
  /** What the system calls the adapter. */
  adapterName(info: GPUAdapterInfo): string;
  /** The adapter's graphics API: "vulkan", "metal", "gl", "d3d12". */
  backendOf(adapter: Pick<GPUAdapter, "limits">): string;
  isOutOfMemory(error: GPUError): boolean;
  /** Maps a buffer (MAP_READ) once all that was submitted is done; the fastest way there is. */
  mapped(buffer: GPUBuffer, wait?: Wait): Promise<ArrayBuffer>;
  /** Waits for work that the device does outside this thread, the fastest way. */
  settled<T>(promise: Promise<T>): Promise<T>;
  /** Waits for the submitted work if that needs no turn of the event loop; otherwise does nothing. */
  drain(queue: GPUQueue): void;
}

/**
 * The WebGPU that was asked for, or else EYRIE_WEBGPU's, or else the built-in one.
 *
 * @throws UsageError where the variable names none, or Dawn cannot be loaded.
 */
export function openWebGpu(asked: WebGpuName | undefined = webGpuOf(variable())): WebGpu {
  quietLoader();
  return asked === "dawn" ? dawn() : builtin();
}

/** The EGL loader complains on stderr at every start of a session that has no runtime folder. */
function quietLoader(): void {
  if (Deno.build.os !== "linux" || Deno.env.get("XDG_RUNTIME_DIR")) return;
  Deno.env.set("XDG_RUNTIME_DIR", "/tmp");
}

/** What EYRIE_WEBGPU chooses; undefined where it is not set. @throws UsageError on no WebGPU's name. */
export function webGpuOf(value: string | undefined): WebGpuName | undefined {
  if (!value) return undefined;
  const found = NAMES.find((name) => name === value);
  if (found !== undefined) return found;
  throw new UsageError(`Cannot use ${VARIABLE} "${value}": it is ${NAMES.join(" or ")}`);
}

function variable(): string | undefined {
  return Deno.env.get(VARIABLE);
}

/** wgpu, in every Deno. */
function builtin(): WebGpu {
  return {
    name: "builtin",
    requestAdapter: async (options) => await navigator.gpu?.requestAdapter(options) ?? null,
    adapterName: ({ description, device }) => description || device || "unknown adapter",
    backendOf({ limits }) {
      return guessBackend(Deno.build.os, limits, Deno.env.get("DENO_WEBGPU_BACKEND"));
    },
    isOutOfMemory: (error) => error instanceof GPUOutOfMemoryError,
    mapped: mappedByCall,
    settled: (promise) => promise,
    drain: (queue) => void queue.onSubmittedWorkDone().catch(() => {}),
  };
}

/**
 * Deno's mapAsync sleeps 10 ms after the data is already there, so it is not awaited: the call
 * itself drains the queue and the range is mapped when it returns. Where a later Deno maps lazily,
 * getMappedRange throws and the promise is awaited after all.
 */
async function mappedByCall(buffer: GPUBuffer): Promise<ArrayBuffer> {
  const mapped = buffer.mapAsync(GPUMapMode.READ);
  mapped.catch(() => {});
  try {
    return buffer.getMappedRange();
  } catch {
    await mapped;
    return buffer.getMappedRange();
  }
}

function dawn(): WebGpu {
  const { gpu, backend, isOutOfMemory } = loadDawn();
  // The closures below keep `gpu` alive: without it Dawn's instance is freed, and all that the instance made.
  const polls = catchPolls();
  const gc = collectorOfV8();
  const garbage = gc && openCollector(gc, handlesOfV8);
  return {
    name: "dawn",
    requestAdapter: async (options) => await gpu.requestAdapter(options),
    // Dawn's `device` is the adapter's name in lower case with dashes, its `description` the driver.
    adapterName: ({ description, device }) =>
      [device.replace(/-$/, ""), description].filter(Boolean).join(", ") || "unknown adapter",
    backendOf: () => backend,
    isOutOfMemory,
    mapped: (buffer, { lasting, busyMs = 0, stillBusy } = {}) =>
      mappedByPolling(polls, buffer, {
        busyMs,
        stillBusy,
        meanwhile: () => garbage?.collectOverdue(lasting),
      }),
    settled: (promise) => settledByPolling(polls, promise, () => garbage?.collectOverdue()),
    drain: () => {},
  };
}
