import { UsageError } from "../../../errors.ts";
import { clash } from "../clash.ts";

/** What WebGPU `bench` measures on; both are compared. */
export const BENCH_WEBGPU = {
  webgpu: {
    flag: "--webgpu",
    type: "names",
    words: ["builtin", "dawn"],
    help:
      "WebGPU implementation: Deno's own, or Dawn, an npm package that has to be downloaded once; builtin,dawn measures both and compares them",
    absent: "EYRIE_WEBGPU of the environment, else builtin",
    example: "--webgpu builtin,dawn",
  },
} as const;

/** Flags of a measurement on one WebGPU, by the names of their values. */
const OF_ONE = { resume: "--resume", emitConfig: "--emit-config" };

/** @throws UsageError for names of no WebGPU, and for what two cannot have together. */
export function refuseImpossibleBackends(given: Readonly<Record<string, unknown>>): void {
  const { webgpu } = given;
  if (!Array.isArray(webgpu)) return;
  const names: readonly string[] = webgpu;
  const known = names.every((name) => BENCH_WEBGPU.webgpu.words.some((word) => word === name));
  if (!known || new Set(names).size < names.length) {
    throw new UsageError(
      `Cannot use "--webgpu ${names.join(",")}": allowed is builtin, dawn or builtin,dawn`,
    );
  }
  if (names.length === 1) return;
  for (const [key, flag] of Object.entries(OF_ONE)) {
    if (given[key] === undefined) continue;
    clash(flag, `--webgpu ${names.join(",")}`, "it is for one WebGPU");
  }
}

/** The one that a process is to open; undefined where the environment says. */
export function oneBackend(
  webgpu: string | readonly string[] | undefined,
): "builtin" | "dawn" | undefined {
  const [name] = typeof webgpu === "string" ? [webgpu] : webgpu ?? [];
  return BENCH_WEBGPU.webgpu.words.find((word) => word === name);
}
