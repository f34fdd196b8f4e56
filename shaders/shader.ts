import { expand } from "../src/gpu/expand.ts";
import { link, type Slots } from "../src/gpu/link.ts";
import { TEXTS } from "./texts.ts";

/**
 * The WGSL of shaders/`path`.wgsl: with the fragments that its `//use` lines name (`link`) and with its
 * `//for` blocks unrolled (`expand`).
 *
 * @throws Error on an unknown path, slot or count.
 */
export function shader(
  path: string,
  { slots = {}, counts = {} }: {
    readonly slots?: Slots;
    readonly counts?: Readonly<Record<string, number>>;
  } = {},
): string {
  return expand(link(path, TEXTS, slots), counts);
}
