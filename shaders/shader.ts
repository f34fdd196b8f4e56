import { expand, type KernelParameters } from "../src/gpu/directives.ts";
import { textOf } from "./texts.ts";

/**
 * The WGSL of shaders/`path`.wgsl with its directives carried out, see `expand`.
 *
 * @throws Error on an unknown path, parameter or import.
 */
export function shader(path: string, parameters: KernelParameters = {}): string {
  return expand(path, textOf, parameters);
}
