/** Launches as one: workgroups of each wait for words of the one before, with what they need besides on its way. */
import { type Cost, type Dispatch, type Kernel, kernel, type Operand } from "../src/gpu/kernel.ts";

/** Bindings of a kernel come after all of the one before. */
const BINDINGS_EACH = 32;

/** What the names of the kernels begin with. */
const PREFIXES = ["a_", "b_", "c_"];

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
 * Joins launches of workgroups of one size, two or three. The `relay` of each but the first is the `out` of the one before:
 * it reads words there that are 0 until they are made, and may call `make_again(first, count, thread)`, which does the
 * work of workgroups `first` and on of the one before. Of what it declares, `relay_begin(y, z)` is called first, with its
 * workgroups, `relay_leave(thread)` when a workgroup is done, and `relay_made(i, thread)` when workgroup i of the one before
 * is. A third may have the second's work done again, so it counts among the readers of the first's words, all of which are
 * one range then.
 */
export function joined(launches: readonly Dispatch[], label: string): Dispatch {
  const last = launches.at(-1) as Dispatch;
  const before = launches.slice(0, -1);
  const [x, y, z] = last.workgroups;
  const places = before.map((launch) => Math.ceil(countOf(launch) / y));
  const upTo = (i: number) => places.slice(0, i).reduce((sum, each) => sum + each, 0);
  const groupsBefore = upTo(before.length);
  const named = <T>(of: (launch: Dispatch, i: number) => Readonly<Record<string, T>>) =>
    Object.fromEntries(
      launches.flatMap((launch, i) =>
        Object.entries(of(launch, i)).map(([name, value]) => [`${PREFIXES[i]}${name}`, value])
      ),
    );
  const works = launches.flatMap(({ work }) => work ? [work] : []);
  return {
    ...last,
    kernel: joinedKernel(launches.map(({ kernel }) => kernel)),
    buffers: named<Operand>(({ buffers: { relay: _, ...others } }) => others),
    constants: {
      ...named(({ constants }) => constants),
      ...named<number>((launch, i) => ({
        ...i > 0 ? { PLACES_BEFORE: upTo(i) } : {},
        ...i < before.length ? { ALONG_Y: launch.workgroups[1], WORKGROUPS: countOf(launch) } : {},
      })),
    },
    workgroups: [x, y, groupsBefore + z],
    groupsBefore,
    label,
    ...works.length === launches.length ? { work: together(works) } : {},
  };
}

function countOf({ workgroups: [, y, z] }: Dispatch): number {
  return y * z;
}

function together(works: readonly Cost[]): Cost {
  const sum = (of: (work: Cost) => number) => works.reduce((all, work) => all + of(work), 0);
  return { ...works.at(-1), bytes: sum(({ bytes }) => bytes), flops: sum(({ flops }) => flops) };
}

function joinedKernel(parts: readonly Kernel[]): Kernel {
  const name = `joined_${parts.map(({ name }) => name).join("_with_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const texts = parts.map(({ code }, i) => prefixed(behind(code, i), prefix(i)));
    const own = (names: (part: Kernel, i: number) => readonly string[]) =>
      parts.flatMap((part, i) => names(part, i).map((name) => `${prefix(i)}${name}`));
    const code = [...texts.map(({ code }) => code), entry(texts.map(({ size }) => size))];
    return kernel(name, code.join("\n"), {
      bindings: own(({ bindings }) => bindings.filter((name) => name !== "relay")),
      constants: [
        ...own(({ constants }) => constants),
        ...own((_, i) => [
          ...i > 0 ? ["PLACES_BEFORE"] : [],
          ...i < parts.length - 1 ? ["ALONG_Y", "WORKGROUPS"] : [],
        ]),
      ],
    });
  });
}

/** The text of launch i, whose relay is what the one before makes. */
function behind(code: string, i: number): string {
  return code
    .replace(/^@group\(0\) @binding\(\d+\) var<storage, read_write> relay:.*\n/m, "")
    .replaceAll(
      /@binding\((\d+)\)/g,
      (_, number) => `@binding(${Number(number) + i * BINDINGS_EACH})`,
    )
    .replaceAll(/(?<![.\w])relay\b/g, `${PREFIXES[i - 1]}out`)
    .replaceAll(/\bmake_again\b/g, `${prefix(i)}make_again`);
}

function prefix(i: number): string {
  return PREFIXES[i] as string;
}

/** @param sizes of workgroups, which are equal. */
function entry(sizes: readonly string[]): string {
  const last = sizes.length - 1;
  const all = sizes.map((_, i) => i);
  const [makers, readers] = [all.slice(0, -1), all.slice(1)];
  return `${makers.map(makes).join("")}${readers.map(waits).join("")}
@compute @workgroup_size(${sizes[0]})
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(num_workgroups) all: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
${readers.map((i) => begins(i, last)).join("")}${makers.map(runs).join("")}${ends(last)}${
    readers.slice(0, -1).map((i) => `  ${prefix(i)}relay_made(0u, thread);\n`).join("")
  }}
`;
}

function ends(last: number): string {
  const own = prefix(last);
  return `  ${own}main(vec3<u32>(tile.xy, tile.z - ${own}PLACES_BEFORE), thread);
  ${own}relay_leave(thread);
`;
}

function makes(i: number): string {
  const own = prefix(i);
  return `override ${own}ALONG_Y: u32; // workgroups of the launch
override ${own}WORKGROUPS: u32; // and those along z together
`;
}

function waits(i: number): string {
  const [before, own] = [prefix(i - 1), prefix(i)];
  const [begun, ended] = i > 1
    ? [`  ${before}uncounted = true;\n`, `  ${before}uncounted = false;\n`]
    : ["", ""];
  return `override ${own}PLACES_BEFORE: u32; // along z, that hold what comes before the launch

fn ${own}make_again(first: u32, count: u32, thread: u32) {
${begun}  for (var i = first; i < first + count; i++) {
    ${before}main(vec3<u32>(0u, i % ${before}ALONG_Y, i / ${before}ALONG_Y), thread);
    workgroupBarrier();
  }
${ended}}
`;
}

function begins(i: number, last: number): string {
  const own = prefix(i);
  const places = `all.z - ${prefix(last)}PLACES_BEFORE`;
  return i === last
    ? `  ${own}relay_begin(all.y, ${places});\n`
    : `  ${own}relay_begin(${own}ALONG_Y, ${own}WORKGROUPS / ${own}ALONG_Y);
  ${own}readers += all.y * (${places});
`;
}

/** A workgroup of launch i, for whose words others wait. */
function runs(i: number): string {
  const [own, next] = [prefix(i), prefix(i + 1)];
  const place = i > 0 ? `(tile.z - ${own}PLACES_BEFORE)` : "tile.z";
  return `  if (tile.z < ${next}PLACES_BEFORE) {
    let i = ${place} * all.y + tile.y;
    if (i < ${own}WORKGROUPS) {
      ${own}main(vec3<u32>(0u, i % ${own}ALONG_Y, i / ${own}ALONG_Y), thread);
${i > 0 ? `      ${own}relay_leave(thread);\n` : ""}      storageBarrier();
      ${next}relay_made(i, thread);
    }
    return;
  }
`;
}
