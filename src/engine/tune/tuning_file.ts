/**
 * What `autotune` measured, kept in one small JSON file of the user's cache folder:
 *
 *     {
 *       "format": 1,
 *       "adapters": { KEY: { SHAPE: { ROWS: { stage, groups, pairs?, prefetch? } } } },
 *       "joined": { KEY: { MLP: boolean } }
 *     }
 *
 * KEY is `adapterKey`, SHAPE is `shapeKey`, MLP is `joinedKey`. A writer reads the file again, adds what it measured
 * and replaces the file by a rename: concurrent processes lose a measurement at worst.
 */
import { KERNEL_VERSION } from "../../../kernels/matmul/matmul_tune.ts";
import { reason } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import { type Env, userFolder } from "../../user_folders.ts";
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

const NOTHING: Measured = { launches: new Map(), joined: new Map() };

/** The file summed up. */
export interface TuningContents {
  /** Undefined where no home folder is known. */
  readonly path: string | undefined;
  /** The number of measured launches of each adapter, which is named by `adapterKey`. */
  readonly adapters: readonly { readonly adapter: string; readonly launches: number }[];
  /** Why the file, or the entry of an adapter, cannot be read; undefined if everything was read. */
  readonly problem: string | undefined;
}

/** Where the file is; undefined where no home folder is known. */
export function tuningPath(
  env: Env = (name) => Deno.env.get(name),
  os: typeof Deno.build.os = Deno.build.os,
): string | undefined {
  const folder = userFolder("cache", env, os);
  return folder && `${folder}/eyrie/tuning.json`;
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
 * What the file has of an adapter; nothing where there is no file.
 *
 * @param onWarning is called for a file, or an adapter's measurements, that cannot be read: they count as none.
 */
export function readTuning(
  path: string,
  key: string,
  onWarning: (line: string) => void,
): Measured {
  try {
    return measuredOf(readTables(path), key);
  } catch (error) {
    onWarning(`cannot use the tuning cache "${path}": ${reason(error)}; measuring again`);
    return NOTHING;
  }
}

/** Reads the file for `doctor`. A file or an entry that cannot be read is a `problem`, not an error. */
export function lookAtTuning(path: string | undefined): TuningContents {
  if (path === undefined) return { path, adapters: [], problem: undefined };
  let problem: string | undefined;
  const readable = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      problem ??= `cannot use the tuning cache "${path}": ${reason(error)}`;
      return undefined;
    }
  };
  const tables = readable(() => readTables(path)) ?? NO_TABLES;
  const adapters = Object.keys(tables.adapters).flatMap((adapter) => {
    const measured = readable(() => measuredOf(tables, adapter));
    if (measured === undefined) return [];
    const { launches, joined } = measured;
    const count = [...launches.values()].reduce((sum, rows) => sum + rows.size, joined.size);
    return [{ adapter, launches: count }];
  });
  return { path, adapters, problem };
}

/**
 * Adds what was measured on an adapter to the file, and leaves the others as they are, also what another version wrote
 * and this one cannot read. A folder that takes no file is a warning.
 */
export function writeTuning(
  path: string,
  key: string,
  { launches, joined }: Measured,
  onWarning: (line: string) => void,
): void {
  let [tables, before] = [NO_TABLES, NOTHING];
  try {
    tables = readTables(path);
    before = measuredOf(tables, key);
  } catch {
    // What cannot be read is written anew.
  }
  const merged = [...launches].map(([shape, rows]) =>
    [shape, new Map([...before.launches.get(shape) ?? [], ...rows])] as const
  );
  const shapes = [...new Map([...before.launches, ...merged])]
    .map(([shape, rows]) => [shape, Object.fromEntries(rows)]);
  const json = {
    format: FORMAT,
    adapters: { ...tables.adapters, [key]: Object.fromEntries(shapes) },
    joined: { ...tables.joined, [key]: Object.fromEntries([...before.joined, ...joined]) },
  };
  try {
    replaceFile(path, `${JSON.stringify(json, null, 1)}\n`);
  } catch (error) {
    onWarning(`cannot write the tuning cache "${path}": ${reason(error)}`);
  }
}

/** The file's tables by adapter, unread. */
interface Tables {
  readonly adapters: Readonly<Record<string, unknown>>;
  readonly joined: Readonly<Record<string, unknown>>;
}

const NO_TABLES: Tables = { adapters: {}, joined: {} };

/** None where there is no file. @throws Error when it is not this format. */
function readTables(path: string): Tables {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return NO_TABLES;
    throw error;
  }
  const { format, adapters, joined = {} } = objectOf(JSON.parse(text));
  if (format !== FORMAT) throw new Error(`its format is not ${FORMAT}`);
  return { adapters: objectOf(adapters), joined: objectOf(joined) };
}

/** @throws Error when the adapter's tables are not this format. */
function measuredOf({ adapters, joined }: Tables, key: string): Measured {
  if (!Object.hasOwn(adapters, key)) return NOTHING;
  return {
    launches: new Map(
      Object.entries(objectOf(adapters[key])).map(([shape, rows]) => [shape, parseRows(rows)]),
    ),
    joined: parseJoined(joined[key] ?? {}),
  };
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
