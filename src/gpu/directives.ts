/**
 * Parameters of a kernel's text: flags for `#if`, numbers for `#for` and `$NAME`, and words (the format of
 * weights, for example) for `#if name == word` and the path of an `#import`.
 */
export type KernelParameters = Readonly<Record<string, boolean | number | string>>;

/** The constraint on a type of parameters: an interface whose members are flags, numbers or words. */
export type ParametersOf<T> = { readonly [Name in keyof T]: boolean | number | string };

/** The WGSL text of a path: relative to one folder, with slashes, without ".wgsl"; undefined if there is none. */
export type Texts = (path: string) => string | undefined;

/**
 * Expands the directives of a kernel's WGSL. To every other reader of WGSL they are comments:
 *
 *     //#import lib/name       inserts the declarations of that path, once however often they are imported. An indented
 *                              import, inside a function, inserts the statements of that path each time
 *     //#import lib/name_$x    the same, `$x` being the value of a parameter
 *     //#if FLAG               also !FLAG, name == word and name != word
 *     //#else if FLAG
 *     //#else
 *     //#endif
 *     //#for i in N            the lines up to `//#endfor` N times (N a parameter or a number); `$i` is 0, 1, 2, ...
 *     //#endfor
 *
 * naga emits loops that drivers do not unroll (gfx-rs/wgpu#7698), hence `#for`. `$NAME` is the value of a parameter,
 * 1 or 0 for a flag; `$(i * NAME + 1)` is the value of a sum of products. `#if` on a number holds unless it is 0.
 *
 * @param texts is called once for each path.
 * @returns a function that expands the text of a path. It throws an Error on a path without a text, a missing
 * parameter, a parameter that no directive or value names (branches that are not taken count), an unbalanced block, and
 * files that import each other in a circle.
 */
export function expander(
  texts: Texts,
): (path: string, parameters?: KernelParameters) => string {
  const files = new Map<string, File | undefined>();
  const fileOf = (path: string) =>
    files.getOrInsertComputed(path, () => {
      const text = texts(path);
      return text === undefined ? undefined : read(path, text);
    });

  return (path, parameters = {}) => {
    const text = expand(path, fileOf, parameters);
    const named = namesIn(path, fileOf, parameters);
    const unused = Object.keys(parameters).find((name) => !named.has(name));
    if (unused === undefined) return text;
    throw new Error(`${path}.wgsl: nothing names the parameter "${unused}"`);
  };
}

function expand(
  path: string,
  fileOf: (path: string) => File | undefined,
  parameters: KernelParameters,
): string {
  const imported = new Set<string>();

  /** `importers` are the files that are being read, outermost first. */
  function textOf(path: string, importers: readonly string[]): string {
    const file = fileOf(path);
    if (file === undefined) throw new Error(`${at(importers)}//#import ${path}: no such file`);
    imported.add(path);
    const cursor = { file, next: 0 };
    const out = block(cursor, [...importers, path], true);
    if (cursor.next++ < file.lines.length) throw unbalanced(cursor);
    return out.join("\n");
  }

  /** Reads up to the directive that ends the block, but not that one. Returns no lines if the block is not `taken`. */
  function block(cursor: Cursor, files: readonly string[], taken: boolean): string[] {
    const out: string[] = [];
    const { path, lines } = cursor.file;
    while (cursor.next < lines.length) {
      const { text, indent, word, rest } = lines[cursor.next] as Line;
      if (ENDS.has(word)) return out;
      cursor.next++;
      if (word === "") {
        if (taken) out.push(text);
      } else if (word === "import") {
        if (taken) out.push(...declarations(rest, indent, cursor, files));
      } else if (word === "if") out.push(...branches(rest, cursor, files, taken));
      else if (word === "for") out.push(...loop(rest, cursor, files, taken));
      else throw new Error(`${path}.wgsl: //#${word}: no such directive`);
    }
    return out;
  }

  function declarations(
    named: string,
    indent: string,
    { file: { path } }: Cursor,
    files: readonly string[],
  ): string[] {
    const wanted = named.replaceAll(CHOSEN, (_, name) => `${valueOf(name, parameters, path)}`);
    if (files.includes(wanted)) {
      throw new Error(
        `${path}.wgsl: //#import ${wanted}: a circle, ${[...files, wanted].join(" -> ")}`,
      );
    }
    if (indent === "" && imported.has(wanted)) return [];
    return [textOf(wanted, files).replaceAll(/^(?=.)/gm, indent)];
  }

  function branches(
    first: string,
    cursor: Cursor,
    files: readonly string[],
    taken: boolean,
  ): string[] {
    const out: string[] = [];
    let open = taken; // whether a branch may still be taken
    for (let condition: string | undefined = first;;) {
      const here: boolean = open &&
        (condition === undefined || holds(condition, parameters, cursor));
      out.push(...block(cursor, files, here));
      open &&= !here;
      const { word, rest } = cursor.file.lines[cursor.next++] ?? NO_LINE;
      if (word === "endif") return out;
      if (word !== "else" || condition === undefined) throw unbalanced(cursor);
      condition = /^if (.+)$/.exec(rest)?.[1];
      if (condition === undefined && rest !== "") throw unbalanced(cursor);
    }
  }

  function loop(
    of: string,
    cursor: Cursor,
    files: readonly string[],
    taken: boolean,
  ): string[] {
    const [, variable = "", name = ""] = LOOP.exec(of) ?? [];
    const count = taken ? valueOf(name, parameters, cursor.file.path) : 0;
    const times = Number(count);
    // With a fractional number of loads per invocation some invocations would write to wrong places in the last load.
    if (!Number.isInteger(times) || times < 0) {
      throw new Error(`Cannot expand "${cursor.file.path}": #for ${of}, which is ${count}`);
    }
    const body = block(cursor, files, times !== 0);
    if (cursor.file.lines[cursor.next++]?.word !== "endfor") throw unbalanced(cursor);
    const out: string[] = [];
    for (let i = 0; i < times; i++) out.push(...assigned(body, variable, i));
    return out;
  }

  const valueIn = (name: string) => valueOf(name, parameters, path);
  const text = textOf(path, []).replaceAll(VALUE, (whole, sum?: string, name?: string) => {
    if (sum !== undefined) return `${sumOf(sum, (name) => Number(valueIn(name)), whole)}`;
    if (name === undefined) return whole;
    const value = valueIn(name);
    return `${typeof value === "boolean" ? Number(value) : value}`;
  });
  return `${text}\n`;
}

/** All names in the directives and values of a file and of its imports for these parameters, under any condition. */
function namesIn(
  path: string,
  fileOf: (path: string) => File | undefined,
  parameters: KernelParameters,
): ReadonlySet<string> {
  const names = new Set<string>();
  const paths = new Set([path]);
  // Paths that are added on the way are visited too.
  for (const path of paths) {
    const file = fileOf(path);
    for (const name of file?.names ?? []) names.add(name);
    for (const named of file?.imports ?? []) {
      paths.add(named.replaceAll(CHOSEN, (_, name) => `${parameters[name]}`));
    }
  }
  return names;
}

/** Matches a comment, which stays; `$(...)`, a sum of products of numbers, variables and parameters; or `$NAME`. */
const VALUE = /\/\/.*|\$(?:\(([^)]*)\)|([A-Z][A-Z0-9_]*))/g;

const ENDS: ReadonlySet<string> = new Set(["else", "endif", "endfor"]);

/** Matches the parameter in the path of an import: its value is the path or a part of it. */
const CHOSEN = /\$(\w+)/g;

const CONDITION = /^(!?)(\w+)(?: ([!=])= (\w+))?$/;
const LOOP = /^(\w+) in (\w+)$/;

interface File {
  readonly path: string;
  readonly lines: readonly Line[];
  /** Names in its directives and values: parameters and loop variables. */
  readonly names: ReadonlySet<string>;
  /** Paths as they are written. */
  readonly imports: readonly string[];
}

/** A line with its directive; an empty `word` where it has none. */
interface Line {
  readonly text: string;
  readonly indent: string;
  readonly word: string;
  readonly rest: string;
}

const NO_LINE: Line = { text: "", indent: "", word: "", rest: "" };

/** A file that is being expanded. */
interface Cursor {
  readonly file: File;
  next: number;
}

function read(path: string, text: string): File {
  const lines = text.trimEnd().split("\n").map((text): Line => {
    const [, indent = "", word = "", rest = ""] = /^(\s*)\/\/#(\w+)\s*(.*?)\s*$/.exec(text) ?? [];
    return { text, indent, word, rest };
  });
  const imports = lines.flatMap(({ word, rest }) => word === "import" ? [rest] : []);
  return { path, lines, names: new Set(lines.flatMap(namesOf)), imports };
}

function namesOf({ text, word, rest }: Line): string[] {
  if (word === "import") return [...rest.matchAll(CHOSEN)].map(([, name = ""]) => name);
  if (word === "for") return [LOOP.exec(rest)?.[2] ?? ""];
  if (word !== "") return [CONDITION.exec(rest.replace(/^if /, ""))?.[2] ?? ""];
  if (!text.includes("$")) return [];
  return [...text.matchAll(VALUE)].flatMap(([, sum, name]) =>
    name === undefined ? sum?.match(/\w+/g) ?? [] : [name]
  );
}

function holds(condition: string, parameters: KernelParameters, { file }: Cursor): boolean {
  const [, not = "", name = "", sign, word] = CONDITION.exec(condition) ?? [];
  const value = valueOf(name, parameters, file.path);
  if (sign === undefined) return Boolean(value) !== (not === "!");
  return (value === word) === (sign === "=");
}

/** A parameter, or a number that is written out. */
function valueOf(
  name: string,
  parameters: KernelParameters,
  path: string,
): boolean | number | string {
  if (/^\d+$/.test(name)) return Number(name);
  const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
  if (value === undefined) throw new Error(`${path}.wgsl: no parameter "${name}"`);
  return value;
}

function sumOf(sum: string, valueOf: (name: string) => number, whole: string): number {
  const product = (text: string) =>
    text.split("*").map((name) => valueOf(name.trim())).reduce((a, b) => a * b);
  const value = sum.split("+").map(product).reduce((a, b) => a + b);
  if (Number.isNaN(value)) throw new Error(`${whole}: not a number`);
  return value;
}

/** Returns `body` with the loop variable replaced by its value. */
function assigned(body: readonly string[], variable: string, value: number): string[] {
  const name = new RegExp(`\\b${variable}\\b`, "g");
  return body.map((line) =>
    line.replaceAll(`$${variable}`, `${value}`)
      .replaceAll(/\$\([^)]*\)/g, (sum) => sum.replaceAll(name, `${value}`))
  );
}

function unbalanced({ file: { path }, next }: Cursor): Error {
  return new Error(`${path}.wgsl:${next}: a block that is not closed, or not opened`);
}

function at(importers: readonly string[]): string {
  const importer = importers.at(-1);
  return importer === undefined ? "" : `${importer}.wgsl: `;
}
