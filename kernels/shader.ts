import { expander, type ParametersOf } from "../src/gpu/directives.ts";
import { type Kernel, kernel } from "../src/gpu/kernel.ts";
import { textOf } from "./texts.ts";

/** The WGSL of kernels/`path`.wgsl with its directives carried out, see `expander`. */
export const shader: ReturnType<typeof expander> = expander(textOf);

/** Kernels that were made, by file, name and parameters. */
const kernels = new Map<string, Kernel>();

/**
 * Makes the kernel of a file for one record of parameters; the same record gives the same kernel.
 *
 * @param declared.name what profiles call it: different for different records.
 * @param declared.bindings as for `kernel`, in order of their numbers; `constants` likewise. If absent, they are taken
 * from the text, for texts that bind or override different things.
 * @throws Error as `shader` and `kernel`.
 */
type MakeKernel<Parameters> = <
  const Binding extends string = string,
  const Constant extends string = string,
>(
  parameters: Parameters,
  declared: {
    readonly name: string;
    readonly bindings?: readonly Binding[];
    readonly constants?: readonly Constant[];
  },
) => Kernel<Binding, Constant>;

/** Makes the kernels of kernels/`path`.wgsl, whose directives take `Parameters`; default none. */
export function kernelOf<Parameters extends ParametersOf<Parameters> = Record<string, never>>(
  path: string,
): MakeKernel<Parameters> {
  return (parameters, { name, ...declared }) => {
    const key = JSON.stringify([path, name, parameters]);
    const make = () => kernel(name, shader(path, parameters), declared);
    return kernels.getOrInsertComputed(key, make as () => Kernel) as ReturnType<typeof make>;
  };
}
