import { expander, type ParametersOf } from "../src/gpu/directives.ts";
import { type Kernel, kernel } from "../src/gpu/kernel.ts";
import { textOf } from "./texts.ts";

/** The WGSL of kernels/`path`.wgsl with its directives carried out, see `expander`. */
export const shader: ReturnType<typeof expander> = expander(textOf);

/** Kernels that were made, by name, and the file and parameters of each. */
const kernels = new Map<string, { readonly of: string; readonly made: Kernel }>();

/**
 * Makes the kernel of a file for one record of parameters; the same record gives the same kernel.
 *
 * @param declared.name what profiles call it: different for different records, because kernels are joined by name.
 * @param declared.bindings as for `kernel`, in order of their numbers; `constants` likewise. If absent, they are taken
 * from the text, for texts that bind or override different things.
 * @throws Error as `shader` and `kernel`, and where another record has the name.
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
    const of = JSON.stringify([path, parameters]);
    const make = () => kernel(name, shader(path, parameters), declared);
    const found = kernels.getOrInsertComputed(name, () => ({ of, made: make() as Kernel }));
    if (found.of !== of) throw new Error(`kernel "${name}" has two sources: ${found.of} and ${of}`);
    return found.made as ReturnType<typeof make>;
  };
}
