/**
 * Compiles what record.ts kept with Tint, which holds WGSL to the specification; naga, Deno's compiler,
 * takes more. Dawn's null backend needs no GPU, but a process without Deno's WebGPU: together they crash.
 *
 *   deno run -A --config tests/wgsl/dawn.jsonc tests/wgsl/check.ts FOLDER
 *
 * Writes each fault once, with the modules that have it, and a line of counts; exit code 1 if any.
 */
import { storageFault } from "./storage.ts";

interface Fault {
  /** Without line numbers, so that a fragment's fault is one in all modules that hold it. */
  readonly text: string;
  /** Module, line and column. */
  readonly place: string;
}

/** Dawn. Not a literal of an import: `deno check` has no dawn.jsonc, where the name is resolved. */
const PACKAGE = "webgpu";

/** Features that kernels use, see src/gpu/device.ts. */
const FEATURES = [
  ...["subgroups", "shader-f16", "timestamp-query", "chromium-experimental-subgroup-matrix"],
] as GPUFeatureName[];

// The null adapter has WebGPU's default limits. Kernels are made for what the adapter at hand has.
const LIMIT = /exceeds the maximum|larger than the maximum/;

const SHOWN_PLACES = 5;

async function openDevice(gpu: GPU): Promise<GPUDevice> {
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error("Cannot check WGSL: Dawn has no null adapter");
  return await adapter.requestDevice({ requiredFeatures: FEATURES });
}

/** Faults of a module, or else of the pipelines that were made of it with the given constants. */
async function faultsOf(
  device: GPUDevice,
  { name, code, constants }: {
    readonly name: string;
    readonly code: string;
    readonly constants: readonly string[];
  },
): Promise<Fault[]> {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ label: name, code: forTint(code) });
  const { messages } = await module.getCompilationInfo();
  const refused = await device.popErrorScope();
  const faults = messages.map(({ type, message, lineNum, linePos }) => ({
    text: `${type}: ${message}\n    ${code.split("\n")[lineNum - 1]?.trim() ?? ""}`,
    place: `${name}:${lineNum}:${linePos}`,
  }));
  if (refused) return faults.length > 0 ? faults : [{ text: refused.message, place: name }];
  const fault = storageFault(name, code);
  if (fault !== undefined) return [{ text: fault, place: name }];
  const made = constants.map((text) => pipelineFault(device, module, { name, text }));
  return (await Promise.all(made)).filter((fault) => fault !== undefined);
}

/**
 * Naga takes the functions of subgroups without the line that Tint asks for, and refuses it. On the first line: places
 * stay.
 */
function forTint(code: string): string {
  const enabled = /^enable subgroups;/m.test(code) || !/\bsubgroup[A-Z]\w*\(/.test(code);
  return enabled ? code : `enable subgroups; ${code}`;
}

async function pipelineFault(
  device: GPUDevice,
  module: GPUShaderModule,
  { name, text }: { readonly name: string; readonly text: string },
): Promise<Fault | undefined> {
  device.pushErrorScope("validation");
  const constants = JSON.parse(text) as Record<string, number>;
  device.createComputePipeline({ layout: "auto", compute: { module, constants } });
  const error = await device.popErrorScope();
  if (!error || LIMIT.test(error.message)) return undefined;
  return { text: error.message.trimEnd(), place: `${name} with ${text}` };
}

function report(faults: readonly Fault[]): string {
  const places = Map.groupBy(faults, ({ text }) => text).entries().map(([text, same]) => {
    const shown = same.slice(0, SHOWN_PLACES).map(({ place }) => `  in ${place}`);
    const more = same.length - shown.length;
    return [text, ...shown, ...more > 0 ? [`  and ${more} more`] : []].join("\n");
  });
  return [...places].join("\n");
}

async function check(device: GPUDevice, folder: string): Promise<number> {
  const files = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).toSorted();
  const read = (file: string): Promise<string> => Deno.readTextFile(`${folder}/${file}`);
  const counts = { modules: 0, pipelines: 0 };
  const faults: Fault[] = [];
  for (const file of files.filter((file) => file.endsWith(".wgsl"))) {
    const name = file.slice(0, -".wgsl".length);
    const pipelines = files.filter((other) => other.startsWith(`${name}-`));
    const constants = await Promise.all(pipelines.map(read));
    faults.push(...await faultsOf(device, { name, code: await read(file), constants }));
    counts.modules++;
    counts.pipelines += pipelines.length;
  }
  const of = `Tint: ${counts.modules} modules, ${counts.pipelines} pipelines`;
  say(faults.length === 0 ? `${of}, no faults` : `${report(faults)}\n${of}, with faults`);
  return faults.length === 0 ? 0 : 1;
}

function say(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}

if (import.meta.main) {
  const { create } = await import(PACKAGE) as { create(options: readonly string[]): GPU };
  const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis"]);
  const code = await check(await openDevice(gpu), Deno.args[0] ?? "");
  Deno.exit(gpu ? code : 1); // names gpu, so that it lives as long as its device must
}
