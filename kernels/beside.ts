/**
 * Two launches as one dispatch (horizontal fusion), neither of which reads what the other writes: no dispatch waits for the
 * smaller one. A workgroup is of one of them, so that arrays of workgroup memory of one type are the same: all workgroups
 * of a multiprocessor have 48 KiB together (docs/kernels/README.md).
 */
import { type Dispatch, dispatch, type Kernel, kernel } from "../src/gpu/kernel.ts";
import { MOST_DISPATCHED, type Tuning } from "../src/gpu/matrix.ts";
import { link } from "../src/gpu/wgsl.ts";
import { BINDINGS_EACH, BUILTINS, countOf, named, together } from "./joined.ts";
import { shader } from "./shader.ts";

/** Parameters of beside.wgsl. */
interface BesideParameters {
  /** Invocations of a workgroup. */
  readonly SIZE: string;
}

const kernels = new Map<string, Kernel>();

/** Directives of a module, which come before all else. */
const DIRECTIVES = /^(?:enable|requires|diagnostic)\b[^;]*;\n?/gm;

const BYTES: Readonly<Record<string, number>> = {
  "vec4<f32>": 16,
  "vec4<u32>": 16,
  "vec2<f32>": 8,
  "f32": 4,
  "u32": 4,
};

/** An array of a kernel's workgroup memory. */
interface WorkgroupArray {
  readonly name: string;
  readonly of: string;
  readonly count: number;
}

/** The arrays of a kernel's workgroup memory; undefined where its text does not say how long they are as products of numbers. */
function arraysOf({ code }: Pick<Kernel, "code">): WorkgroupArray[] | undefined {
  const all = [...code.matchAll(/var<workgroup>\s+(\w+):([^;]*);/g)].map(
    ([, name = "", type = ""]) => {
      const [, of = "", count = ""] = /^\s*array<(.*), ([\du* ]+)>$/.exec(type) ?? [];
      const numbers = count.split("*").map((number) => parseInt(number));
      return { name, of, count: numbers.reduce((product, number) => product * number, 1) };
    },
  );
  return all.every(({ of }) => of in BYTES) ? all : undefined;
}

/** Memory that workgroups of two kernels have in common: those of the first, as long as either wants them. */
interface Memory {
  readonly arrays: readonly WorkgroupArray[];
  /** Names of the second's arrays, and of those of the first in whose place they are. */
  readonly shared: ReadonlyMap<string, string>;
  readonly bytes: number;
}

/** Undefined where it is not known: see `arraysOf`. */
export function memoryOf(a: Pick<Kernel, "code">, b: Pick<Kernel, "code">): Memory | undefined {
  const [own, others] = [arraysOf(a), arraysOf(b)];
  if (!own || !others) return undefined;
  const arrays = own.slice();
  const shared = new Map<string, string>();
  let unshared = 0;
  for (const { name, of, count } of others) {
    const taken = [...shared.values()];
    const at = arrays.findIndex((each) => each.of === of && !taken.includes(each.name));
    const found = arrays[at];
    if (!found) unshared += bytesOf({ of, count });
    else {
      arrays[at] = { ...found, count: Math.max(found.count, count) };
      shared.set(name, found.name);
    }
  }
  return { arrays, shared, bytes: arrays.reduce((sum, each) => sum + bytesOf(each), unshared) };
}

function bytesOf({ of, count }: Pick<WorkgroupArray, "of" | "count">): number {
  return (BYTES[of] ?? NaN) * count;
}

/** Invocations of a launch's workgroups. */
export function threadsOf({ kernel: { code }, constants }: Dispatch): number {
  const [, size = ""] = /@workgroup_size\(([^)]*)\)/.exec(code) ?? [];
  return size.split("*").map((word) => word.trim())
    .reduce((product, word) => product * (constants[word] ?? parseInt(word)), 1);
}

/** Whether `beside` takes two launches on an adapter. */
export function canBeBeside(
  launches: readonly [Dispatch, Dispatch],
  { storageBuffers, workgroupBytes: most }: Pick<Tuning, "storageBuffers" | "workgroupBytes">,
): boolean {
  const [a, b] = launches;
  const { bytes } = memoryOf(a.kernel, b.kernel) ?? { bytes: Infinity };
  const buffers = launches.flatMap(({ kernel }) => kernel.bindings);
  return threadsOf(a) === threadsOf(b) && bytes <= most &&
    buffers.length <= storageBuffers && countOf(a) + countOf(b) <= MOST_DISPATCHED;
}

/** Records two launches as one; those of the first begin first. See `canBeBeside`. */
export function beside(launches: readonly [Dispatch, Dispatch], label: string): Dispatch {
  const [a, b] = launches;
  const works = launches.flatMap(({ work }) => work ? [work] : []);
  return dispatch(besideKernel(launches), {
    buffers: named(launches, ({ buffers }) => buffers),
    constants: {
      ...named(launches, ({ constants }) => constants),
      ...named<number>(launches, ({ workgroups: [x, y] }) => ({ ALONG_X: x, ALONG_Y: y })),
      a_WORKGROUPS: countOf(a),
    },
    workgroups: [countOf(a) + countOf(b)],
    label,
    ...works.length === launches.length ? { work: together(works) } : {},
  });
}

function besideKernel(launches: readonly [Dispatch, Dispatch]): Kernel {
  const SIZE = `${threadsOf(launches[0])}`;
  const name = `beside_${SIZE}_${launches.map(({ kernel }) => kernel.name).join("_with_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const [a, b] = launches.map(({ kernel }) => kernel) as [Kernel, Kernel];
    const { arrays = [], shared = new Map<string, string>() } = memoryOf(a, b) ?? {};
    const directives = [a, b].flatMap(({ code }) => code.match(DIRECTIVES) ?? []);
    const longest = arrays.reduce(
      (code, { name, of, count }) =>
        code.replace(
          RegExp(`var<workgroup>\\s+${name}:[^;]*;`),
          `var<workgroup> ${name}: array<${of}, ${count}>;`,
        ),
      a.code,
    );
    const given = Object.fromEntries(shared.entries().map(([name, own]) => [name, `a_${own}`]));
    const parts = [
      link(longest.replace(DIRECTIVES, ""), { prefix: "a_", firstBinding: 0 }),
      link(b.code.replace(DIRECTIVES, ""), { prefix: "b_", firstBinding: BINDINGS_EACH, given }),
    ].map(({ code, entry }) => {
      if (`${entry.builtins}` === BUILTINS) return code;
      throw new Error(`Cannot put "${name}" together: its main takes ${entry.builtins}`);
    });
    const entry = shader("beside", { SIZE } satisfies BesideParameters);
    return kernel(name, [...new Set(directives), ...parts, entry].join("\n"));
  });
}
