/**
 * What `autotune` measured, kept in one small JSON file of the user's cache folder:
 *
 *     {
 *       "format": 1,
 *       "adapters": { KEY: { SHAPE: { ROWS: { stage, groups, pairs?, prefetch? } } } },
 *       "joined": { KEY: { MLP: boolean } }
 *     }
 *
 * KEY is `adapterKey`, SHAPE is `shapeKey`, MLP is `joinedKey`. A writer reads the file again, adds what it measured and
 * replaces the file by a rename: concurrent processes lose a measurement at worst.
 */
import { KERNEL_VERSION } from "../../../kernels/matmul/matmul_tune.ts";
import { reason } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import { replaceFile } from "./replace_file.ts";
import type { DeviceInfo } from "../../gpu/device.ts";
import type { Launch, Launches } from "../../gpu/tuning.ts";

const FORMAT = 1;

/** What was measured on an adapter. */
export interface Measured {
  readonly launches: Launches;
  /** Whether MLPs of a shape run as one launch, see joined.ts. */
  readonly joined: ReadonlyMap<string, boolean>;
}

/** By adapter. */
type TuningTable = ReadonlyMap<string, Measured>;

const NOTHING: Measured = { launches: new Map(), joined: new Map() };

/** The file summed up. */
export interface TuningContents {
  /** Undefined where no home folder is known. */
  readonly path: string | undefined;
  /** The number of measured launches of each adapter, which is named by `adapterKey`. */
  readonly adapters: readonly { readonly adapter: string; readonly launches: number }[];
  readonly problem: string | undefined;
}

/** Reads an environment variable; an empty one counts as absent. */
type Env = (name: string) => string | undefined;

/** Where the file is by the rules of each system; undefined where no home folder is known. */
export function tuningPath(
  env: Env = (name) => Deno.env.get(name),
  os: typeof Deno.build.os = Deno.build.os,
): string | undefined {
  const under = (name: string, ...parts: string[]) => {
    const base = env(name);
    return base ? [base, ...parts, "eyrie", "tuning.json"].join("/") : undefined;
  };
  if (os === "windows") return under("LOCALAPPDATA");
  if (os === "darwin") return under("XDG_CACHE_HOME") ?? under("HOME", "Library", "Caches");
  return under("XDG_CACHE_HOME") ?? under("HOME", ".cache");
}

/**
 * What measurements hold for: adapter and driver as far as they are known, the Deno that turns
 * WGSL into the driver's language, and the kernels.
 *
 * @param driver see `driverVersion`.
 */
export function adapterKey(
  { adapter, hardware, backend, webgpu }: DeviceInfo,
  driver: string,
): string {
  const other = webgpu === "builtin" ? "" : webgpu;
  const parts = [adapter, hardware, backend, other, driver, `deno ${Deno.version.deno}`];
  return [...parts.filter(Boolean), `kernels ${KERNEL_VERSION}`].join(", ");
}

/** WebGPU in Deno has no driver version; NVIDIA's driver on Linux reports its own. */
export function driverVersion(): string {
  if (Deno.build.os !== "linux") return "";
  try {
    const text = Deno.readTextFileSync("/proc/driver/nvidia/version");
    return text.match(/Kernel Module\D*([\d.]+)/)?.[1] ?? "";
  } catch {
    return "";
  }
}

/**
 * The file's tables; none where there is no file.
 *
 * @param onWarning is called for a file that cannot be read or is none of ours; it counts as none.
 */
export function readTuning(path: string, onWarning: (line: string) => void): TuningTable {
  try {
    return parseTuning(JSON.parse(Deno.readTextFileSync(path)));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Map();
    onWarning(`cannot use the tuning cache "${path}": ${reason(error)}; measuring again`);
    return new Map();
  }
}

/** What the file holds, for `doctor`; problem says why nothing of it is used. */
export function lookAtTuning(path: string | undefined): TuningContents {
  let problem: string | undefined;
  const table = path === undefined ? new Map() : readTuning(path, (line) => problem = line);
  const adapters = [...table as TuningTable].map(([adapter, { launches, joined }]) => ({
    adapter,
    launches: [...launches.values()].reduce((sum, rows) => sum + rows.size, joined.size),
  }));
  return { path, adapters, problem };
}

/** Adds what was measured on an adapter to the file. A folder that takes no file is a warning. */
export function writeTuning(
  path: string,
  key: string,
  { launches, joined }: Measured,
  onWarning: (line: string) => void,
): void {
  const table = new Map(readTuning(path, () => {}));
  const before = table.get(key) ?? NOTHING;
  const merged = [...launches].map(([shape, rows]) =>
    [shape, new Map([...before.launches.get(shape) ?? [], ...rows])] as const
  );
  table.set(key, {
    launches: new Map([...before.launches, ...merged]),
    joined: new Map([...before.joined, ...joined]),
  });
  try {
    replaceFile(path, `${JSON.stringify(tuningJson(table), null, 1)}\n`);
  } catch (error) {
    onWarning(`cannot write the tuning cache "${path}": ${reason(error)}`);
  }
}

function tuningJson(table: TuningTable): Record<string, unknown> {
  const adapters = [...table].map(([key, { launches }]) => [
    key,
    Object.fromEntries([...launches].map(([shape, rows]) => [shape, Object.fromEntries(rows)])),
  ]);
  const joined = [...table].map(([key, { joined }]) => [key, Object.fromEntries(joined)]);
  return {
    format: FORMAT,
    adapters: Object.fromEntries(adapters),
    joined: Object.fromEntries(joined),
  };
}

/** @throws Error when it is not this format. */
function parseTuning(json: unknown): TuningTable {
  const { format, adapters, joined = {} } = objectOf(json);
  if (format !== FORMAT) throw new Error(`its format is not ${FORMAT}`);
  return new Map(
    Object.entries(objectOf(adapters)).map(([key, shapes]) => [key, {
      launches: new Map(
        Object.entries(objectOf(shapes)).map(([shape, rows]) => [shape, parseRows(rows)]),
      ),
      joined: parseJoined(objectOf(joined)[key] ?? {}),
    }]),
  );
}

function parseJoined(json: unknown): ReadonlyMap<string, boolean> {
  return new Map(
    Object.entries(objectOf(json)).map(([shape, joins]) => {
      if (typeof joins !== "boolean") throw new Error("whether an MLP is joined is no boolean");
      return [shape, joins];
    }),
  );
}

function parseRows(json: unknown): ReadonlyMap<number, Launch> {
  return new Map(
    Object.entries(objectOf(json)).map(([rows, launch]) => [Number(rows), parseLaunch(launch)]),
  );
}

function parseLaunch(json: unknown): Launch {
  const { stage, groups, pairs, prefetch } = objectOf(json);
  if (typeof stage !== "number" || typeof groups !== "number") {
    throw new Error("a launch has no stage and groups");
  }
  if (pairs !== undefined && pairs !== 1) throw new Error("a launch has other pairs than 1");
  if (prefetch !== undefined && prefetch !== true) {
    throw new Error("a launch has another prefetch than true");
  }
  return {
    stage,
    groups,
    ...pairs === undefined ? {} : { pairs },
    ...prefetch === undefined ? {} : { prefetch },
  };
}

function objectOf(json: unknown): Record<string, unknown> {
  if (isObject(json)) return { ...json };
  throw new Error("it holds no tuning tables");
}
