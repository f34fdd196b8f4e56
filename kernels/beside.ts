/** Two launches as one dispatch, neither of which reads what the other writes: no dispatch waits for the smaller one. */
import { type Dispatch, dispatch, type Kernel, kernel } from "../src/gpu/kernel.ts";
import { MOST_DISPATCHED, type Tuning } from "../src/gpu/matrix.ts";
import { link } from "../src/gpu/wgsl.ts";
import { BINDINGS_EACH, BUILTINS, countOf, named, together } from "./joined.ts";
import { shader } from "./shader.ts";

/** What beside.wgsl takes. */
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

/** Bytes of the workgroup memory of a kernel; undefined where its text does not say them as products of numbers. */
export function workgroupBytes({ code }: Pick<Kernel, "code">): number | undefined {
  const all = [...code.matchAll(/var<workgroup>\s+\w+:([^;]*);/g)];
  const bytes = all.map(([, type = ""]) => {
    const [, of = "", count = ""] = /^\s*array<(.*), ([\du* ]+)>$/.exec(type) ?? [];
    const each = BYTES[of];
    return each && count.split("*").reduce((product, number) => product * parseInt(number), each);
  });
  return bytes.reduce<number | undefined>(
    (sum, each) => sum === undefined || each === undefined ? undefined : sum + each,
    0,
  );
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
  const bytes = launches.map(({ kernel }) => workgroupBytes(kernel) ?? Infinity);
  const buffers = launches.flatMap(({ kernel }) => kernel.bindings);
  return threadsOf(a) === threadsOf(b) && (bytes[0] ?? 0) + (bytes[1] ?? 0) <= most &&
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
    const directives = launches.flatMap(({ kernel }) => kernel.code.match(DIRECTIVES) ?? []);
    const parts = launches.map(({ kernel: { code } }, i) => {
      const place = { prefix: i === 0 ? "a_" : "b_", firstBinding: i * BINDINGS_EACH };
      const part = link(code.replace(DIRECTIVES, ""), place);
      if (`${part.entry.builtins}` === BUILTINS) return part.code;
      throw new Error(`Cannot put "${name}" together: its main takes ${part.entry.builtins}`);
    });
    const entry = shader("beside", { SIZE } satisfies BesideParameters);
    return kernel(name, [...new Set(directives), ...parts, entry].join("\n"));
  });
}
