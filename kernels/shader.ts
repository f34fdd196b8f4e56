import { expand, type KernelParameters } from "../src/gpu/directives.ts";
import { type Kernel, kernel } from "../src/gpu/kernel.ts";
import { textOf } from "./texts.ts";

/**
 * The WGSL of kernels/`path`.wgsl with its directives carried out, see `expand`.
 *
 * @throws Error on an unknown path, parameter or import.
 */
export function shader(path: string, parameters: KernelParameters = {}): string {
  return expand(path, textOf, parameters);
}

/** Kernels that were made, by file, name and parameters. */
const kernels = new Map<string, Kernel>();

/**
 * The kernel of kernels/`path`.wgsl with a record of parameters; the same record gives the same kernel.
 *
 * @param declared.name what profiles call it: different for different records.
 * @param declared.bindings what the text binds, in order of the numbers; `constants`: what it overrides.
 * @throws Error as `shader` and `kernel`.
 */
export function kernelOf<const Binding extends string, const Constant extends string>(
  path: string,
  parameters: KernelParameters,
  { name, ...declared }: {
    readonly name: string;
    readonly bindings: readonly Binding[];
    readonly constants: readonly Constant[];
  },
): Kernel<Binding, Constant> {
  const key = JSON.stringify([path, name, parameters]);
  const make = () => kernel(name, shader(path, parameters), declared) as Kernel;
  return kernels.getOrInsertComputed(key, make) as Kernel<Binding, Constant>;
}
