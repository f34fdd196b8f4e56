/** Two launches as one: workgroups of the second wait for words of the first, with what they need besides on its way. */
import { type Dispatch, type Kernel, kernel, type Work } from "../src/gpu/kernel.ts";

/** Bindings of the second kernel come after all of the first. */
const SECOND_BINDING = 32;

const DECLARED =
  /^(?:@group\(0\) @binding\(\d+\) )?(?:fn|var<[^>]*>|override|const|struct|alias) +(\w+)/gm;
const ENTRY =
  /@compute @workgroup_size\(([^)]*)\)\s*fn main\(\s*@builtin\(workgroup_id\) tile: vec3<u32>,\s*@builtin\(local_invocation_index\) thread: u32,?\s*\)/;

/**
 * WGSL with a prefix before all names that it declares at module scope, `main` as a function `<prefix>main(tile, thread)`
 * that may be called.
 */
export function prefixed(
  code: string,
  prefix: string,
): { readonly code: string; readonly size: string } {
  const names = new Set([...code.matchAll(DECLARED)].map((match) => match[1] as string));
  names.delete("main");
  const words = (text: string) =>
    text.replaceAll(/(?<![.\w])[A-Za-z_]\w*/g, (word) => names.has(word) ? prefix + word : word);
  // Members of structs keep their names, which come after a dot elsewhere.
  const declared = (text: string) =>
    text.replaceAll(
      /^(\s*)(\w+:)(.*)$/gm,
      (_, indent, member, type) => indent + member + words(type),
    );
  const all = (text: string) =>
    text.split(/^(struct \w+ \{\n[^}]*\})/gm)
      .map((part, i) => {
        if (i % 2 === 0) return words(part);
        const [head = "", ...members] = part.split("\n");
        return [words(head), declared(members.join("\n"))].join("\n");
      }).join("");
  const size = ENTRY.exec(code)?.[1];
  if (size === undefined) throw new Error(`${prefix}: no entry point to join`);
  const callable = code.replace(ENTRY, `fn ${prefix}main(tile: vec3<u32>, thread: u32)`);
  return { code: all(callable), size: words(size) };
}

const kernels = new Map<string, Kernel>();

/**
 * Joins two launches of workgroups of one size. The second's `relay` is the first's `out`: it reads words there that are 0
 * until they are made, and may call `make_again(first, count, thread)`, which does the work of workgroups `first` and on of the
 * first launch. Of what it declares, `relay_begin(y, z)` is called first, with its workgroups, `relay_leave(thread)` when a
 * workgroup is done, and `relay_made(i, thread)` when workgroup i of the first is. All of those are along y.
 */
export function joined(first: Dispatch, second: Dispatch, label: string): Dispatch {
  const made = joinedKernel(first.kernel, second.kernel);
  const [x, y, z] = second.workgroups;
  const named = <T>(prefix: string, values: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]));
  const { relay: _, ...others } = second.buffers;
  const groupsBefore = Math.ceil(first.workgroups[1] / y);
  return {
    ...second,
    kernel: made,
    buffers: { ...named("a_", first.buffers), ...named("b_", others) },
    constants: {
      ...named("a_", first.constants),
      ...named("b_", second.constants),
      FIRST_GROUPS: first.workgroups[1],
      BEFORE: groupsBefore,
    },
    workgroups: [x, y, groupsBefore + z],
    groupsBefore,
    label,
    ...first.work && second.work ? { work: together(first.work, second.work) } : {},
  };
}

function together(first: Work, second: Work): Work {
  const { bytes, flops } = second;
  return { ...second, bytes: first.bytes + bytes, flops: first.flops + flops };
}

function joinedKernel(first: Kernel, second: Kernel): Kernel {
  const name = `joined_${first.name}_with_${second.name}`;
  return kernels.getOrInsertComputed(name, () => {
    const a = prefixed(first.code, "a_");
    const moved = second.code
      .replace(/^@group\(0\) @binding\(\d+\) var<storage, read_write> relay:.*\n/m, "")
      .replaceAll(
        /@binding\((\d+)\)/g,
        (_, number) => `@binding(${Number(number) + SECOND_BINDING})`,
      )
      .replaceAll(/(?<![.\w])relay\b/g, "a_out");
    const b = prefixed(moved, "b_");
    const bindings = [
      ...first.bindings.map((binding) => `a_${binding}`),
      ...second.bindings.filter((binding) => binding !== "relay").map((binding) => `b_${binding}`),
    ];
    return kernel(name, `${a.code}\n${b.code}\n${entry(a.size)}`, {
      bindings,
      constants: [
        ...first.constants.map((constant) => `a_${constant}`),
        ...second.constants.map((constant) => `b_${constant}`),
        ...["FIRST_GROUPS", "BEFORE"],
      ],
    });
  });
}

function entry(size: string): string {
  return `override FIRST_GROUPS: u32; // workgroups of the first launch
override BEFORE: u32; // places along z that hold them

fn make_again(first: u32, count: u32, thread: u32) {
  for (var i = first; i < first + count; i++) {
    a_main(vec3<u32>(0u, i, 0u), thread);
    workgroupBarrier();
  }
}

@compute @workgroup_size(${size})
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(num_workgroups) all: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  b_relay_begin(all.y, all.z - BEFORE);
  if (tile.z < BEFORE) {
    let i = tile.z * all.y + tile.y;
    if (i < FIRST_GROUPS) {
      a_main(vec3<u32>(0u, i, 0u), thread);
      storageBarrier();
      b_relay_made(i, thread);
    }
    return;
  }
  b_main(vec3<u32>(tile.xy, tile.z - BEFORE), thread);
  b_relay_leave(thread);
}
`;
}
