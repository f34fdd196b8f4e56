/** Dawn, Google's WebGPU: the npm package `webgpu` is its addon for Node-API, which Deno loads too. */
import { createRequire } from "node:module";
import { reason, UsageError } from "../errors.ts";

/** The package is not imported, because Deno would then download it for every user. */
export const DAWN_PACKAGE = "npm:webgpu@0.6.2";

/** --no-config keeps the package out of a clone's lockfile, which would make every user download it. */
export const ADD_DAWN: string = `deno cache --no-config ${DAWN_PACKAGE}`;

/** What the addon exports. */
interface Addon {
  create(flags: readonly string[]): GPU;
  readonly globals: { readonly GPUOutOfMemoryError: new (message: string) => GPUError };
}

/** Dawn, loaded and created. */
export interface Dawn {
  readonly gpu: GPU;
  /** The graphics API of its adapters: "vulkan", "metal" or "d3d12". */
  readonly backend: string;
  isOutOfMemory(error: GPUError): boolean;
}

const BACKENDS: Partial<Record<typeof Deno.build.os, string>> = {
  windows: "d3d12",
  darwin: "metal",
};

/** The first enables subgroup matrices, the second f16 on NVIDIA; DISABLED makes timestamps exact to 1 ns. */
const ENABLED = "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia";
const DISABLED = "disable-dawn-features=timestamp_quantization";

/** Reads an environment variable; an empty one counts as absent. */
type Env = (name: string) => string | undefined;

/**
 * Loads the addon from Deno's cache; downloads nothing. Deno's own device must not be opened in the
 * same process: together they crash.
 *
 * @throws UsageError with the command that adds the package where it is not there.
 */
export function loadDawn(
  env: Env = (name) => Deno.env.get(name),
  { os, arch }: Pick<typeof Deno.build, "os" | "arch"> = Deno.build,
): Dawn {
  const path = addonPath(denoFolder(env, os), { os, arch });
  if (path === undefined) {
    throw new UsageError(
      `Cannot use WebGPU "dawn": the package ${DAWN_PACKAGE} is not in Deno's cache; ` +
        `"${ADD_DAWN}" adds it (51 MB)`,
    );
  }
  const backend = BACKENDS[os] ?? "vulkan";
  try {
    const { create, globals } = createRequire(import.meta.url)(path) as Addon;
    return {
      gpu: create([`backend=${backend}`, ENABLED, DISABLED]),
      backend,
      isOutOfMemory: (error) => error instanceof globals.GPUOutOfMemoryError,
    };
  } catch (error) {
    throw new UsageError(`Cannot use WebGPU "dawn": "${path}" does not load: ${reason(error)}`, {
      cause: error,
    });
  }
}

/** The addon in a Deno cache: any registry's copy; undefined where there is none for this system. */
export function addonPath(
  cache: string | undefined,
  { os, arch }: Pick<typeof Deno.build, "os" | "arch">,
): string | undefined {
  if (cache === undefined) return undefined;
  const [name, version] = DAWN_PACKAGE.replace("npm:", "").split("@");
  const cpu = arch === "aarch64" ? "arm64" : "x64";
  const system = os === "darwin" ? "darwin-universal" : `${os === "windows" ? "win32" : os}-${cpu}`;
  return foldersIn(`${cache}/npm`)
    .map((registry) => `${cache}/npm/${registry}/${name}/${version}/dist/${system}/dawn.node`)
    .find(isFile);
}

/** Deno's cache: DENO_DIR, else a folder of the system's cache; undefined where no home is known. */
export function denoFolder(env: Env, os: typeof Deno.build.os): string | undefined {
  const direct = env("DENO_DIR");
  if (direct) return direct;
  const under = (name: string, ...parts: string[]) => {
    const base = env(name);
    return base ? [base, ...parts, "deno"].join(os === "windows" ? "\\" : "/") : undefined;
  };
  if (os === "windows") return under("LOCALAPPDATA");
  if (os === "darwin") return under("HOME", "Library", "Caches");
  return under("XDG_CACHE_HOME") ?? under("HOME", ".cache");
}

function foldersIn(path: string): string[] {
  try {
    return [...Deno.readDirSync(path)].filter(({ isDirectory }) => isDirectory)
      .map(({ name }) => name).toSorted();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
