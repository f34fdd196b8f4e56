/**
 * Two launches as one dispatch (horizontal fusion). Neither reads what the other writes, and no dispatch waits for the
 * smaller one. Each workgroup runs one of the two, so both use the same arrays of workgroup memory where the types are
 * equal: all workgroups of a multiprocessor share 48 KiB (docs/kernels/README.md).
 */
import { type Dispatch, dispatch, type Kernel, kernel, MAX_DISPATCHED } from "../src/gpu/kernel.ts";
import type { Tuning } from "../src/gpu/tuning.ts";
import {
  memoryBytes,
  type Sized,
  workgroupInvocations,
  workgroupVariables,
} from "../src/gpu/workgroup.ts";
import { link } from "../src/gpu/wgsl.ts";
import { BINDINGS_EACH, BUILTINS, countOf, named, together } from "./joined.ts";
import { shader } from "./shader.ts";

/** Parameters of fused.wgsl. */
interface FusedParameters {
  /** Invocations of a workgroup. */
  readonly SIZE: string;
}

const kernels = new Map<string, Kernel>();

/** Directives of a module, which come before all else. */
const DIRECTIVES = /^(?:enable|requires|diagnostic)\b[^;]*;\n?/gm;

/** An array of workgroup memory that both kernels use, or one of them. */
interface SharedArray {
  readonly of: string;
  readonly count: number;
  readonly bytes: number;
  /** Its names in the first and in the second kernel. */
  readonly names: readonly [first: string | undefined, second: string | undefined];
}

/**
 * Workgroup memory of two kernels, of which a workgroup runs one: arrays of the same type become one array of the
 * larger length.
 */
interface Memory {
  readonly arrays: readonly SharedArray[];
  readonly bytes: number;
}

/** Workgroup memory of two launches together. Arrays whose lengths are numbers are shared. */
export function memoryOf(a: Sized, b: Sized): Memory {
  const [first, second] = [workgroupVariables(a), workgroupVariables(b)];
  const arrays: SharedArray[] = first.filter(({ literal }) => literal)
    .map(({ name, of, count, bytes }) => ({ of, count, bytes, names: [name, undefined] }));
  for (const { name, of, count, bytes } of second.filter(({ literal }) => literal)) {
    const at = arrays.findIndex((each) => each.of === of && each.names[1] === undefined);
    const found = arrays[at] ?? { of, count, bytes, names: [undefined, undefined] };
    const shared: SharedArray = {
      of,
      count: Math.max(found.count, count),
      bytes: Math.max(found.bytes, bytes),
      names: [found.names[0], name],
    };
    arrays.splice(at < 0 ? arrays.length : at, 1, shared);
  }
  const alone = [...first, ...second].filter(({ literal }) => !literal);
  return { arrays, bytes: memoryBytes([...arrays, ...alone]) };
}

/** Whether `fused` takes two launches on an adapter. */
export function canBeFused(
  launches: readonly [Dispatch, Dispatch],
  { storageBuffers, workgroupBytes: most }: Pick<Tuning, "storageBuffers" | "workgroupBytes">,
): boolean {
  const [a, b] = launches;
  const { bytes } = memoryOf(a, b);
  const buffers = launches.flatMap(({ kernel }) => kernel.bindings);
  return workgroupInvocations(a) === workgroupInvocations(b) && bytes <= most &&
    buffers.length <= storageBuffers && countOf(a) + countOf(b) <= MAX_DISPATCHED;
}

/** Records two launches as one; those of the first begin first. See `canBeFused`. */
export function fused(launches: readonly [Dispatch, Dispatch], label: string): Dispatch {
  const [a, b] = launches;
  const works = launches.flatMap(({ work }) => work ? [work] : []);
  return dispatch(fusedKernel(launches), {
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

function fusedKernel(launches: readonly [Dispatch, Dispatch]): Kernel {
  const SIZE = `${workgroupInvocations(launches[0])}`;
  const name = `fused_${SIZE}_${launches.map(({ kernel }) => kernel.name).join("_with_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const [a, b] = launches.map(({ kernel }) => kernel) as [Kernel, Kernel];
    const { arrays } = memoryOf(...launches);
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
    const entry = shader("fused", { SIZE } satisfies FusedParameters);
    return kernel(name, [...new Set(directives), ...memory, ...parts, entry].join("\n"));
  });
}

function sharedName(i: number): string {
  return `shared_${i}`;
}
