/**
 * What a kernel's text depends on: a flag by `#if`, a number by `#for` and `$NAME`, a word (the format of
 * weights, say) by `#if name == word` and in the path of an `#import`.
 */
export type KernelParameters = Readonly<Record<string, boolean | number | string>>;

/** A WGSL text by its path: relative to one folder, with slashes, without ".wgsl"; undefined where there is none. */
export type Texts = (path: string) => string | undefined;

/**
 * The WGSL of a kernel. Its directives are comments to everything else that reads WGSL:
 *
 *     //#import lib/name       the declarations of that path, once however often they are imported; where the line is
 *                              indented, in a function, its statements, each time
 *     //#import lib/name_$x    the same, `$x` being the value of a parameter
 *     //#if FLAG               also !FLAG, name == word and name != word
 *     //#else if FLAG
 *     //#else
 *     //#endif
 *     //#for i in N            the lines up to `//#endfor` N times (or so many as a number says), `$i` being 0, 1, 2, ...
 *     //#endfor
 *
 * naga emits loops that drivers do not unroll (gfx-rs/wgpu#7698), hence `#for`. `$NAME` is the value of a
 * parameter, 1 or 0 for a flag, `$(i * NAME + 1)` that of a sum of products. A number as a flag is set unless it is 0.
 *
 * @throws Error on a path without a text, an unknown parameter, an unbalanced block or files that import each
 * other in a circle.
 */
export function expand(path: string, texts: Texts, parameters: KernelParameters = {}): string {
  const imported = new Set<string>();

  /** `importers` are the files that are being read, outermost first. */
  function textOf(path: string, importers: readonly string[]): string {
    const text = texts(path);
    if (text === undefined) throw new Error(`${at(importers)}//#import ${path}: no such file`);
    imported.add(path);
    const lines = text.trimEnd().split("\n");
    const cursor = { lines, next: 0, path };
    const out = block(cursor, [...importers, path], true);
    if (cursor.next++ < lines.length) throw unbalanced(cursor);
    return out.join("\n");
  }

  /** Lines up to the directive that ends the block, which is left unread; none where it is not `taken`. */
  function block(cursor: Cursor, files: readonly string[], taken: boolean): string[] {
    const out: string[] = [];
    while (cursor.next < cursor.lines.length) {
      const line = cursor.lines[cursor.next] as string;
      const { indent, word, rest } = directive(line);
      if (ENDS.has(word)) return out;
      cursor.next++;
      if (word === "") out.push(...taken ? [line] : []);
      else if (word === "import") {
        if (taken) out.push(...declarations(rest, indent, cursor, files));
      } else if (word === "if") out.push(...branches(rest, cursor, files, taken));
      else if (word === "for") out.push(...loop(rest, cursor, files, taken));
      else throw new Error(`${cursor.path}.wgsl: //#${word}: no such directive`);
    }
    return out;
  }

  function declarations(
    named: string,
    indent: string,
    { path }: Cursor,
    files: readonly string[],
  ): string[] {
    const wanted = named.replaceAll(/\$(\w+)/g, (_, name) => `${valueOf(name, parameters, path)}`);
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
    let open = taken; // whether no branch was taken yet
    for (let condition: string | undefined = first;;) {
      const here: boolean = open &&
        (condition === undefined || holds(condition, parameters, cursor));
      out.push(...block(cursor, files, here));
      open &&= !here;
      const { word, rest } = directive(cursor.lines[cursor.next++] ?? "");
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
    const [, variable = "", name = ""] = /^(\w+) in (\w+)$/.exec(of) ?? [];
    const count = taken ? valueOf(name, parameters, cursor.path) : 0;
    const body = block(cursor, files, count !== 0);
    if (directive(cursor.lines[cursor.next++] ?? "").word !== "endfor") throw unbalanced(cursor);
    const out: string[] = [];
    for (let i = 0; i < Number(count); i++) out.push(...assigned(body, variable, i));
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

/** A comment, which stays, a sum of products of numbers, variables and parameters, or a parameter. */
const VALUE = /\/\/.*|\$(?:\(([^)]*)\)|([A-Z][A-Z0-9_]*))/g;

const ENDS: ReadonlySet<string> = new Set(["else", "endif", "endfor"]);

/** A file that is being read. */
interface Cursor {
  readonly path: string;
  readonly lines: readonly string[];
  next: number;
}

/** The directive of a line; an empty `word` where it has none. */
function directive(line: string): Record<"indent" | "word" | "rest", string> {
  const [, indent = "", word = "", rest = ""] = /^(\s*)\/\/#(\w+)\s*(.*?)\s*$/.exec(line) ?? [];
  return { indent, word, rest };
}

function holds(condition: string, parameters: KernelParameters, { path }: Cursor): boolean {
  const [, not = "", name = "", sign, word] = /^(!?)(\w+)(?: ([!=])= (\w+))?$/.exec(condition) ??
    [];
  const value = valueOf(name, parameters, path);
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

/** `body` with a variable's value in the place of its name. */
function assigned(body: readonly string[], variable: string, value: number): string[] {
  const name = new RegExp(`\\b${variable}\\b`, "g");
  return body.map((line) =>
    line.replaceAll(`$${variable}`, `${value}`)
      .replaceAll(/\$\([^)]*\)/g, (sum) => sum.replaceAll(name, `${value}`))
  );
}

function unbalanced({ path, next }: Cursor): Error {
  return new Error(`${path}.wgsl:${next}: a block that is not closed, or not opened`);
}

function at(importers: readonly string[]): string {
  const importer = importers.at(-1);
  return importer === undefined ? "" : `${importer}.wgsl: `;
}
