import {
  type Engine,
  type Machine,
  openEngine as open,
  type OpenOptions,
} from "../../src/engine/open.ts";
import { gpuMemory } from "../../src/gpu/memory.ts";
import { openGpu } from "../gpu/shared.ts";

export type { Engine, Machine, OpenOptions };

/** The product's, on the device that a test file's engines share. */
export function openEngine(
  options: OpenOptions,
  machine: Machine = { openGpu, gpuMemory },
): Promise<Engine> {
  return open(options, machine);
}
