import { type LocalEngine, type Machine, openEngine as open } from "../../src/engine/open.ts";
import type { OpenOptions } from "../../src/engine/options.ts";
import { gpuMemory } from "../../src/gpu/memory.ts";
import { openGpu } from "../gpu/shared.ts";

export type { LocalEngine, Machine, OpenOptions };

/** The product's, on the device that a test file's engines share. */
export function openEngine(
  options: OpenOptions,
  machine: Machine = { openGpu, gpuMemory },
): Promise<LocalEngine> {
  return open(options, machine);
}
