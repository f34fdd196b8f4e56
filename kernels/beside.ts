/**
 * Two launches as one dispatch (horizontal fusion), neither of which reads what the other writes: no dispatch waits for the
 * smaller one. A workgroup is of one of them, so that arrays of workgroup memory of one type are the same: all workgroups
 * of a multiprocessor have 48 KiB together (docs/kernels/README.md).
 */
import { type Dispatch, dispatch, type Kernel, kernel } from "../src/gpu/kernel.ts";
import { MOST_DISPATCHED, type Tuning } from "../src/gpu/matrix.ts";
import { link, workgroupVariables } from "../src/gpu/wgsl.ts";
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

/** An array of workgroup memory that two kernels have in common, or one of them has. */
interface SharedArray {
  readonly of: string;
  readonly count: number;
  /** What the first and the second call it. */
  readonly names: readonly [first: string | undefined, second: string | undefined];
}

/** An array of a kernel's workgroup memory. */
interface WorkgroupArray {
  readonly name: string;
  readonly of: string;
  readonly count: number;
}

/** Those of kernels whose text was read. */
const known = new WeakMap<Pick<Kernel, "code">, WorkgroupArray[] | undefined>();

/** The arrays of a kernel; undefined where its text does not say how long they are as products of numbers. */
function arraysOf(kernel: Pick<Kernel, "code">): WorkgroupArray[] | undefined {
  return known.getOrInsertComputed(kernel, readArrays);
}

function readArrays({ code }: Pick<Kernel, "code">): WorkgroupArray[] | undefined {
  const all = workgroupVariables(code).map(({ name, type }) => {
    const [, of = "", count = ""] = /^array<(.*),([\du*]+)>$/.exec(type) ?? [];
    const numbers = count.split("*").map((number) => parseInt(number));
    return { name, of, count: numbers.reduce((product, number) => product * number, 1) };
  });
  return all.every(({ of }) => of in BYTES) ? all : undefined;
}

/** Workgroup memory of two kernels, of which a workgroup runs one: arrays of a type are one, as long as either wants it. */
interface Memory {
  readonly arrays: readonly SharedArray[];
  readonly bytes: number;
}

/** Undefined where it is not known: see `arraysOf`. */
export function memoryOf(a: Pick<Kernel, "code">, b: Pick<Kernel, "code">): Memory | undefined {
  const [first, second] = [arraysOf(a), arraysOf(b)];
  if (!first || !second) return undefined;
  const arrays: SharedArray[] = first.map(({ name, ...array }) => ({
    ...array,
    names: [name, undefined],
  }));
  for (const { name, of, count } of second) {
    const at = arrays.findIndex((each) => each.of === of && each.names[1] === undefined);
    const found = arrays[at] ?? { of, count, names: [undefined, undefined] };
    const shared: SharedArray = {
      of,
      count: Math.max(found.count, count),
      names: [found.names[0], name],
    };
    arrays.splice(at < 0 ? arrays.length : at, 1, shared);
  }
  return {
    arrays,
    bytes: arrays.reduce((sum, { of, count }) => sum + (BYTES[of] ?? NaN) * count, 0),
  };
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
    const { arrays = [] } = memoryOf(a, b) ?? {};
    const directives = [a, b].flatMap(({ code }) => code.match(DIRECTIVES) ?? []);
    const memory = arrays.map(({ of, count }, i) =>
      `var<workgroup> ${sharedName(i)}: array<${of}, ${count}>;`
    );
    const given = (place: 0 | 1) =>
      Object.fromEntries(arrays.flatMap(({ names }, i) => {
        const name = names[place];
        return name === undefined ? [] : [[name, sharedName(i)]];
      }));
    const text = ({ code }: Kernel) => code.replace(DIRECTIVES, "");
    const parts = [
      link(text(a), { prefix: "a_", firstBinding: 0, given: given(0) }),
      link(text(b), { prefix: "b_", firstBinding: BINDINGS_EACH, given: given(1) }),
    ].map(({ code, entry }) => {
      if (`${entry.builtins}` === BUILTINS) return code;
      throw new Error(`Cannot put "${name}" together: its main takes ${entry.builtins}`);
    });
    const entry = shader("beside", { SIZE } satisfies BesideParameters);
    return kernel(name, [...new Set(directives), ...memory, ...parts, entry].join("\n"));
  });
}

function sharedName(i: number): string {
  return `shared_${i}`;
}
