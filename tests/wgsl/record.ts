/**
 * Keeps the WGSL that this process compiles for check.ts, in the folder that EYRIE_WGSL names:
 *
 *   KERNEL-HASH.wgsl       a module that Deno took; what it refuses fails where it is compiled
 *   KERNEL-HASH-HASH.json  the override constants of a pipeline made of it
 */
import { createHash } from "node:crypto";
import { RECORD_FOLDER } from "./processes.ts";

const folder = Deno.env.get(RECORD_FOLDER);
if (folder !== undefined) recordInto(folder);

function recordInto(folder: string): void {
  const names = new WeakMap<GPUShaderModule, string>();
  const kept = new Set<string>();

  function keep(file: string, text: string): void {
    if (kept.has(file)) return;
    kept.add(file);
    Deno.writeTextFileSync(`${folder}/${file}`, text);
  }

  const { createShaderModule, createComputePipeline, createComputePipelineAsync } =
    GPUDevice.prototype;

  GPUDevice.prototype.createShaderModule = function (descriptor) {
    const module = createShaderModule.call(this, descriptor);
    const { label, code } = descriptor;
    const name = `${label?.replaceAll(/[^\w.]/g, "_") || "unnamed"}-${hashOf(code)}`;
    names.set(module, name);
    module.getCompilationInfo().then(({ messages }) => {
      if (!messages.some(({ type }) => type === "error")) keep(`${name}.wgsl`, code);
    });
    return module;
  };

  function keepConstants({ module, constants = {} }: GPUProgrammableStage): void {
    const text = JSON.stringify(constants);
    keep(`${names.get(module)}-${hashOf(text)}.json`, text);
  }

  GPUDevice.prototype.createComputePipeline = function (descriptor) {
    keepConstants(descriptor.compute);
    return createComputePipeline.call(this, descriptor);
  };

  GPUDevice.prototype.createComputePipelineAsync = function (descriptor) {
    keepConstants(descriptor.compute);
    return createComputePipelineAsync.call(this, descriptor);
  };
}

/** Short: with names of launches that are joined, files must have at most 255 characters. */
function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
