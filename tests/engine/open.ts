import { type LocalEngine, type Machine, openEngine as open } from "../../src/engine/open.ts";
import type { LocalOptions } from "../../src/engine/options.ts";
import { gpuMemory } from "../../src/gpu/memory.ts";
import { openGpu } from "../gpu/shared.ts";

export type { LocalEngine, LocalOptions, Machine };

/** The product's, on the device that a test file's engines share. */
export function openEngine(
  options: LocalOptions,
  machine: Machine = { openGpu, gpuMemory },
): Promise<LocalEngine> {
  return open(options, machine);
}
