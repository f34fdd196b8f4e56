/**
 * A joined launch: two or three launches as one dispatch. The workgroups of each wait for words of the one before,
 * while their other loads are in flight. The kernels' modules are linked into one, followed by joined.wgsl with the
 * entry point, which decides what each workgroup does.
 */
import {
  type Cost,
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../src/gpu/kernel.ts";
import type { Tuning } from "../src/gpu/tuning.ts";
import { link, type Part } from "../src/gpu/wgsl.ts";
import { workgroupMemory } from "../src/gpu/workgroup.ts";
import { shader } from "./shader.ts";

/** Binding numbers per kernel: the bindings of a kernel come after all of the one before. */
export const BINDINGS_EACH = 32;

/** What the names of the kernels' declarations begin with, as in joined.wgsl. */
const PREFIXES = ["a_", "b_", "c_"] as const;

/** What `main` of a kernel that may be joined takes: joined.wgsl calls it with these. */
export const BUILTINS = "workgroup_id,local_invocation_index";

/** What joined.wgsl takes. */
interface JoinedParameters {
  /** Size of a workgroup, as in `@workgroup_size`. */
  readonly SIZE: string;
  /** Whether there are three kernels, and not two. */
  readonly THREE: boolean;
}

const kernels = new Map<string, Kernel>();

/**
 * Joins two or three launches, with workgroups of one size, in the order in which they would run. The `handoff` of each
 * launch but the first is the `out` of the one before, whose words are 0 until they are made. joined.wgsl says what
 * else a kernel declares and what it may call. A third launch may redo the second's work, so it counts among the
 * readers of the first's words, which are all one range then.
 */
export function joined(launches: readonly Dispatch[], label: string): Dispatch {
  const last = launches.at(-1) as Dispatch;
  const before = launches.slice(0, -1);
  const [x, y, z] = last.workgroups;
  // Along z come the workgroups of the launches before, in rows of as many as the last launch has along y.
  const depths = before.map((launch) => Math.ceil(countOf(launch) / y));
  const upTo = (i: number) => depths.slice(0, i).reduce((sum, each) => sum + each, 0);
  const groupsBefore = upTo(before.length);
  const works = launches.flatMap(({ work }) => work ? [work] : []);
  return dispatch(joinedKernel(launches.map(({ kernel }) => kernel)), {
    ...last,
    buffers: named<Operand>(launches, ({ buffers: { handoff: _, ...others } }) => others),
    constants: {
      ...named(launches, ({ constants }) => constants),
      ...named<number>(launches, (launch, i) => ({
        ...i > 0 ? { PLACES_BEFORE: upTo(i) } : {},
        ...i < before.length ? { ALONG_Y: launch.workgroups[1], WORKGROUPS: countOf(launch) } : {},
      })),
    },
    workgroups: [x, y, groupsBefore + z],
    groupsBefore,
    label,
    ...works.length === launches.length ? { work: together(works) } : {},
  });
}

/** Whether an adapter has the storage buffers and the workgroup memory of a joined launch: the sum of its kernels'. */
export function canBeJoined(
  launch: Dispatch,
  { storageBuffers, workgroupBytes: most }: Pick<Tuning, "storageBuffers" | "workgroupBytes">,
): boolean {
  return launch.kernel.bindings.length <= storageBuffers &&
    workgroupMemory(launch) <= most;
}

/** The named values of all launches, each name with the prefix of its kernel's declarations. */
export function named<T>(
  launches: readonly Dispatch[],
  of: (launch: Dispatch, i: number) => Readonly<Record<string, T>>,
): Record<string, T> {
  return Object.fromEntries(
    launches.flatMap((launch, i) =>
      Object.entries(of(launch, i)).map(([name, value]) => [`${PREFIXES[i]}${name}`, value])
    ),
  );
}

/** Workgroups of a launch. */
export function countOf({ workgroups: [x, y, z] }: Dispatch): number {
  return x * y * z;
}

export function together(works: readonly Cost[]): Cost {
  const sum = (of: (work: Cost) => number) => works.reduce((all, work) => all + of(work), 0);
  return { ...works.at(-1), bytes: sum(({ bytes }) => bytes), flops: sum(({ flops }) => flops) };
}

function joinedKernel(launched: readonly Kernel[]): Kernel {
  const name = `joined_${launched.map(({ name }) => name).join("_with_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const parts = launched.map(({ name, code }, i) => {
      const part = linked(code, i);
      if (`${part.entry.builtins}` === BUILTINS) return part;
      throw new Error(`Cannot join "${name}": its main takes ${part.entry.builtins}`);
    });
    const SIZE = (parts[0] as Part).entry.workgroupSize;
    const parameters = { SIZE, THREE: parts.length === 3 } satisfies JoinedParameters;
    const entry = shader("joined", parameters);
    return kernel(name, [...parts.map(({ code }) => code), entry].join("\n"));
  });
}

/** The module of launch i as a part of the joined one. */
function linked(code: string, i: number): Part {
  const prefix = PREFIXES[i] as string;
  const given = { handoff: `${PREFIXES[i - 1]}out`, make_again: `${prefix}make_again` };
  return link(code, { prefix, firstBinding: i * BINDINGS_EACH, given: i > 0 ? given : {} });
}
