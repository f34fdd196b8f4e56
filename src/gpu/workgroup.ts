/** Memory and invocations of launches' workgroups, read from their WGSL. */
import type { Dispatch, Kernel } from "./kernel.ts";

/** A variable of a launch's workgroup memory: an array of `count` elements, or one element. */
export interface WorkgroupVariable {
  readonly name: string;
  /** Type of an element, without white space. */
  readonly of: string;
  readonly count: number;
  /** Whether it is an array of a built-in type, whose length is a number or a product of numbers in the WGSL. */
  readonly literal: boolean;
  readonly bytes: number;
}

/** What gives array lengths: a kernel's text and its override constants. */
export type Sized = { readonly kernel: Pick<Kernel, "code"> } & Pick<Dispatch, "constants">;

/** What a kernel's text declares. Eyrie's modules have one declaration a line. */
interface Declarations {
  readonly variables: readonly { readonly name: string; readonly type: string }[];
  /** Expressions of constants, and the defaults of overrides. */
  readonly values: ReadonlyMap<string, string>;
  /** Types of the members of each struct, in order; an alias is as a struct of one. */
  readonly structs: ReadonlyMap<string, readonly string[]>;
}

interface Layout {
  readonly bytes: number;
  readonly align: number;
}

const SCALARS: Readonly<Record<string, number>> = { f32: 4, u32: 4, i32: 4, bool: 4, f16: 2 };

/** Operators of u32s, those that bind least first. */
const OPERATORS: readonly Readonly<Record<string, (a: number, b: number) => number>>[] = [
  { "|": (a, b) => a | b },
  { "+": (a, b) => a + b, "-": (a, b) => a - b },
  { "*": (a, b) => a * b, "/": (a, b) => Math.floor(a / b), "%": (a, b) => a % b },
];

const known = new WeakMap<Pick<Kernel, "code">, Declarations>();

/**
 * The variables of a launch's workgroup memory.
 *
 * @throws Error where a type or length is of a kind that this file does not know.
 */
export function workgroupVariables(launch: Sized): WorkgroupVariable[] {
  const { variables, structs } = known.getOrInsertComputed(launch.kernel, declarationsOf);
  return variables.map(({ name, type }) => {
    const [, of = type, length = "1"] = /^array<(.*),([^,<>]+)>$/.exec(type) ?? [];
    const literal = of !== type && /^[\du*]+$/.test(length) && !structs.has(of);
    return {
      name,
      of,
      count: evaluate(length, launch),
      literal,
      bytes: layoutOf(type, launch).bytes,
    };
  });
}

/** Bytes of a launch's workgroup memory. */
export function workgroupMemory(launch: Sized): number {
  return memoryBytes(workgroupVariables(launch));
}

/** Bytes of variables in workgroup memory: WebGPU counts each in whole 16 bytes. */
export function memoryBytes(variables: readonly Pick<WorkgroupVariable, "bytes">[]): number {
  return variables.reduce((sum, { bytes }) => sum + roundUp(bytes, 16), 0);
}

/** Invocations of a launch's workgroups. */
export function workgroupInvocations(launch: Sized): number {
  const [, size = ""] = /@workgroup_size\(([^@{]*?),?\s*\)\s*(?:@|fn)/.exec(launch.kernel.code) ??
    [];
  return size.split(",").reduce((product, each) => product * evaluate(each, launch), 1);
}

function layoutOf(type: string, launch: Sized): Layout {
  const [, kind = type, of = "", length = "1"] =
    /^(array|vec[234]|atomic)<(.*?)(?:,([^,<>]+))?>$/.exec(type) ?? [];
  if (kind === "atomic") return layoutOf(of, launch);
  if (kind === "array") {
    const { bytes, align } = layoutOf(of, launch);
    return { bytes: evaluate(length, launch) * roundUp(bytes, align), align };
  }
  if (kind !== type) {
    const { bytes } = layoutOf(of, launch);
    const count = Number(kind.slice("vec".length));
    return { bytes: count * bytes, align: (count === 3 ? 4 : count) * bytes };
  }
  const scalar = SCALARS[type];
  if (scalar !== undefined) return { bytes: scalar, align: scalar };
  const members = known.get(launch.kernel)?.structs.get(type);
  if (!members) throw new Error(`Cannot tell the size of the WGSL type "${type}"`);
  const layouts = members.map((member) => layoutOf(member, launch));
  const align = Math.max(...layouts.map((member) => member.align));
  const end = layouts.reduce((at, member) => roundUp(at, member.align) + member.bytes, 0);
  return { bytes: roundUp(end, align), align };
}

/** The value of a constant expression of u32s. */
function evaluate(expression: string, launch: Sized): number {
  const { values } = known.getOrInsertComputed(launch.kernel, declarationsOf);
  const tokens = expression.match(/\w+|\S/g) ?? [];
  const value = binary(0);
  if (tokens.length > 0) throw new Error(`Cannot tell the value of "${expression}" in WGSL`);
  return value;

  function binary(level: number): number {
    const operators = OPERATORS[level];
    if (!operators) return operand();
    let value = binary(level + 1);
    for (let apply = operators[tokens[0] ?? ""]; apply; apply = operators[tokens[0] ?? ""]) {
      tokens.shift();
      value = apply(value, binary(level + 1));
    }
    return value;
  }

  function operand(): number {
    const token = tokens.shift() ?? "";
    if (token !== "(") return /^\d/.test(token) ? parseInt(token) : named(token);
    const value = binary(0);
    tokens.shift();
    return value;
  }

  function named(name: string): number {
    const value = launch.constants[name];
    if (value !== undefined) return value;
    const expression = values.get(name);
    if (!expression) throw new Error(`Cannot tell the value of "${name}" in WGSL`);
    return evaluate(expression, launch);
  }
}

function declarationsOf({ code }: Pick<Kernel, "code">): Declarations {
  const all = (pattern: RegExp) => [...code.matchAll(pattern)];
  return {
    variables: all(/^var<workgroup> (\w+): ([^;]*);/gm)
      .map(([, name = "", type = ""]) => ({ name, type: type.replace(/\s/g, "") })),
    values: new Map(
      all(/^(?:const|override) (\w+)(?:: u32)? = ([^;]*);/gm)
        .map(([, name = "", expression = ""]) => [name, expression]),
    ),
    structs: new Map<string, readonly string[]>([
      ...all(/^struct (\w+) \{([^}]*)\}/gm).map(([, name = "", members = ""]) =>
        [
          name,
          [...members.matchAll(/^ *\w+: ([^;]*?),?(?: *\/\/.*)?$/gm)].map(([, type = ""]) =>
            type.replace(/\s/g, "")
          ),
        ] as const
      ),
      ...all(/^alias (\w+) = ([^;]*);/gm).map(([, name = "", of = ""]) => [name, [of]] as const),
    ]),
  };
}

function roundUp(value: number, to: number): number {
  return Math.ceil(value / to) * to;
}
