/** Links WGSL modules into one: what each declares gets a prefix, wherever the module refers to it. */

/** How a module becomes a part of another one. */
export interface Link {
  /** What the names of all that it declares begin with there. */
  readonly prefix: string;
  /** Added to the numbers of its bindings. */
  readonly firstBinding: number;
  /** What other parts declare for it, by its names here; its own declarations of them are left out. */
  readonly given?: Readonly<Record<string, string>>;
}

/** A module as a part of another one. */
export interface Part {
  readonly code: string;
  /** Its entry point, which is a function like others there. */
  readonly entry: {
    /** Expressions, as `@workgroup_size` has them. */
    readonly workgroupSize: string;
    /** Of its parameters, in order. */
    readonly builtins: readonly string[];
  };
}

/**
 * Makes a module a part of another one. Locals, parameters and members keep their names, also where something at module
 * scope has the same, and so do words in comments.
 *
 * @throws Error on a text that is no module or has no entry point, and on a new name that the text uses already.
 */
export function link(code: string, { prefix, firstBinding, given = {} }: Link): Part {
  const { tokens, declarations, references } = parse(code);
  const names = new Map(Object.entries(given));
  for (const { name } of declarations) {
    if (!names.has(name)) names.set(name, prefix + name);
  }
  const made = new Set(names.values());
  const taken = tokens.find((token) => made.has(token));
  if (taken !== undefined) {
    throw new Error(`Cannot link "${taken}": the module has that name already`);
  }
  const linked = tokens.slice();
  const text = ([from, end]: Range) => linked.slice(from, end).join("");
  const leaveOut = ([from, end]: Range) =>
    linked.fill("", from, isBlank(tokens[end]) ? end + 1 : end);

  for (const at of references) linked[at] = names.get(tokens[at] as string) ?? tokens[at] as string;
  for (const { attributes } of declarations) {
    const [number] = attributes.get("binding")?.inner ?? [];
    if (number !== undefined) linked[number] = `${Number(tokens[number]) + firstBinding}`;
  }
  const main = declarations.find(({ attributes }) => attributes.has("compute"));
  const size = main?.attributes.get("workgroup_size");
  if (!main || !size) throw new Error(`Cannot link "${prefix}": the module has no entry point`);
  const workgroupSize = text(size.inner);
  const builtins = main.parameters.map(({ attributes }) =>
    text(attributes.get("builtin")?.inner ?? [0, 0])
  );
  for (const { attributes } of [main, ...main.parameters]) {
    for (const { whole } of attributes.values()) leaveOut(whole);
  }
  for (const { name, whole } of declarations) {
    if (Object.hasOwn(given, name)) leaveOut(whole);
  }
  return { code: linked.join(""), entry: { workgroupSize, builtins } };
}

/** A variable of workgroup memory, and its type without blanks. */
export interface WorkgroupVariable {
  readonly name: string;
  readonly type: string;
}

/**
 * The variables of a module that are in workgroup memory.
 *
 * @throws Error on a text that is no module.
 */
export function workgroupVariables(code: string): WorkgroupVariable[] {
  const { tokens, declarations } = parse(code);
  return declarations.flatMap(({ name, nameAt, whole: [from, end] }) => {
    const text = (first: number, past: number) =>
      tokens.slice(first, past).filter((token) => !isBlank(token)).join("");
    if (text(from, nameAt) !== "var<workgroup>") return [];
    return [{ name, type: text(nameAt + 1, end).slice(":".length, -";".length) }];
  });
}

/** A module whose constants are read from a uniform buffer, where nothing needs them when it is compiled. */
export interface UniformModule {
  readonly code: string;
  /** What the buffer holds, a word each, at @group(1) @binding(0): names of former `override`s. */
  readonly constants: readonly UniformConstant[];
}

export interface UniformConstant {
  readonly name: string;
  readonly type: "u32" | "i32" | "f32";
}

/** The structure of them, and the variable. */
const UNIFORM = "Constants_";
const UNIFORM_VARIABLE = "constants_";

/**
 * Makes `override`s members of a uniform buffer, but for those that sizes of workgroups and of workgroup memory or
 * other declarations at module scope depend on: dispatches with other constants then share a pipeline.
 *
 * @throws Error on a text that is no module.
 */
export function withUniforms(code: string): UniformModule {
  const { tokens, declarations, references } = parse(code);
  const outside = declarations.filter(({ kind }) => kind !== "fn");
  const inside = (at: number, [from, end]: Range) => at >= from && at < end;
  const sizes = declarations.flatMap(({ attributes }) => {
    const size = attributes.get("workgroup_size");
    return size ? [size.inner] : [];
  });
  const needed = new Set(
    references.filter((at) =>
      sizes.some((size) => inside(at, size)) ||
      outside.some(({ whole, nameAt }) => at !== nameAt && inside(at, whole))
    ).map((at) => tokens[at]),
  );
  const constants: UniformConstant[] = [];
  const changed = tokens.slice();
  for (const { kind, name, whole: [from, end], attributes, type } of declarations) {
    const isWord = type === "u32" || type === "i32" || type === "f32";
    const isPlain = isWord && attributes.size === 0 && !tokens.slice(from, end).includes("=");
    if (kind !== "override" || !isPlain || needed.has(name)) continue;
    constants.push({ name, type });
    changed.fill("", from, end);
  }
  if (constants.length === 0) return { code, constants };
  const moved = new Set(constants.map(({ name }) => name));
  for (const at of references) {
    if (moved.has(tokens[at] as string) && changed[at] !== "") {
      changed[at] = `${UNIFORM_VARIABLE}.${tokens[at]}`;
    }
  }
  const members = constants.map(({ name, type }) => `  ${name}: ${type},\n`).join("");
  const declared = `struct ${UNIFORM} {\n${members}}\n` +
    `@group(1) @binding(0) var<uniform> ${UNIFORM_VARIABLE}: ${UNIFORM};\n`;
  return { code: changed.join("") + declared, constants };
}

/** Numbers are indices of tokens, ends the index after the last. */
interface Module {
  /** The pieces of the text, blanks and comments too. */
  readonly tokens: readonly string[];
  readonly declarations: readonly Declaration[];
  /** Names at module scope, declared by this or another module or by WGSL: where they are declared and used. */
  readonly references: readonly number[];
}

type Range = readonly [from: number, end: number];

interface Declaration {
  /** Its keyword. */
  readonly kind: string;
  readonly name: string;
  readonly nameAt: number;
  /** The word behind the name's colon, where that is a type. */
  readonly type: string | undefined;
  /** With its attributes. */
  readonly whole: Range;
  readonly attributes: Attributes;
  /** Of a function. */
  readonly parameters: readonly Parameter[];
}

interface Parameter {
  readonly name: string;
  readonly attributes: Attributes;
}

/** By their names; `inner` is what is in the parentheses. */
type Attributes = ReadonlyMap<string, { readonly whole: Range; readonly inner: Range }>;

/** Blanks, comments, words, the digits of a number, or one character: what a module's scopes depend on. */
const TOKEN = /\s+|\/\/.*|\/\*[^]*?\*\/|[A-Za-z_]\w*|\d[\w.]*|[^]/g;
const WORD = /^[A-Za-z_]/;

const DIRECTIVES = new Set(["enable", "requires", "diagnostic"]);

/** Declarations at module scope that end with a semicolon. */
const VALUES = new Set(["var", "override", "const", "alias"]);

/** What declares a name of a function; it is that name's from its semicolon on. */
const LOCALS = new Set(["let", "var", "const"]);

/** Attributes whose arguments are no expressions. */
const WORDS_OF_THEIR_OWN = new Set(["builtin", "interpolate", "diagnostic"]);

/** Whether a token is blanks or a comment, which begins with a slash and is longer. */
function isBlank(token = ""): boolean {
  return token.charCodeAt(0) <= 32 || token.length > 1 && token.startsWith("/");
}

/**
 * Reads a module as far as declarations and scopes go: https://www.w3.org/TR/WGSL/#grammar.
 *
 * @throws Error where a declaration, or the end of one, is missing.
 */
function parse(code: string): Module {
  const tokens = code.match(TOKEN) ?? [];
  const declarations: Declaration[] = [];
  const references: number[] = [];
  /** Locals and parameters, outermost first. */
  const scopes: Set<string>[] = [];
  let at = -1; // of the token that is read next, never a blank
  let token = "";
  advance();
  while (at < tokens.length) declaration();
  return { tokens, declarations, references };

  /** @returns the token that is passed. */
  function advance(): string {
    if (at >= tokens.length) throw new Error("Cannot read WGSL: it ends too early");
    const passed = token;
    do token = tokens[++at] ?? ""; while (isBlank(token));
    return passed;
  }

  function expect(text: string): void {
    if (token !== text) throw new Error(`Cannot read WGSL "${token}": "${text}" is expected`);
    advance();
  }

  /** From a token up to the last before this one. */
  function since(from: number): Range {
    let end = at;
    while (isBlank(tokens[end - 1])) end--;
    return [from, end];
  }

  function declaration(): void {
    const from = at;
    const own = attributes();
    const kind = advance();
    if (kind === ";") return;
    if (DIRECTIVES.has(kind)) {
      while (advance() !== ";");
      return;
    }
    if (kind === "const_assert") return value();
    template();
    const [name, nameAt] = [token, at];
    pass();
    const type = token === ":" ? following() : undefined;
    let parameters: readonly Parameter[] = [];
    if (kind === "fn") {
      parameters = members("(", ")");
      passTo("{");
      scopes.push(new Set(parameters.map(({ name }) => name)));
      block();
      scopes.pop();
    } else if (kind === "struct") members("{", "}");
    else if (VALUES.has(kind)) value();
    else throw new Error(`Cannot read WGSL "${kind}": a declaration is expected`);
    declarations.push({
      kind,
      name,
      nameAt,
      type,
      whole: since(from),
      attributes: own,
      parameters,
    });
  }

  /** The token behind this one. */
  function following(): string | undefined {
    let next = at + 1;
    while (isBlank(tokens[next])) next++;
    return tokens[next];
  }

  /** What is left of a declaration that a semicolon ends. */
  function value(): void {
    passTo(";");
    advance();
  }

  /** Passes a token of a type, an expression or a statement, and what belongs to it. */
  function pass(): void {
    if (token === "@") return void attribute();
    if (token === ".") advance(); // before a member, which is no reference
    else if (WORD.test(token) && !scopes.some((names) => names.has(token))) references.push(at);
    advance();
  }

  /** Passes types and expressions, up to one of `ends` outside of brackets. */
  function passTo(ends: string, open = "([", close = ")]"): void {
    for (let depth = 0; depth > 0 || !ends.includes(token);) {
      if (open.includes(token)) depth++;
      if (close.includes(token)) depth--;
      pass();
    }
  }

  function attributes(): Attributes {
    const all = new Map<string, { readonly whole: Range; readonly inner: Range }>();
    while (token === "@") all.set(...attribute());
    return all;
  }

  function attribute(): [name: string, { readonly whole: Range; readonly inner: Range }] {
    const from = at;
    expect("@");
    const name = advance();
    const isBare = token !== "(";
    if (isBare) return [name, { whole: since(from), inner: [at, at] }];
    advance();
    const first = at;
    if (WORDS_OF_THEIR_OWN.has(name)) {
      while (token !== ")") advance();
    } else passTo(")");
    const inner = since(first);
    advance();
    return [name, { whole: since(from), inner }];
  }

  /** As of `var<storage, read>`, where there is one. */
  function template(): void {
    if (token !== "<") return;
    passTo(">");
    advance();
  }

  /** Parameters or members: attributes, a name and a type each. */
  function members(open: string, close: string): Parameter[] {
    const all: Parameter[] = [];
    expect(open);
    while (token !== close) {
      const own = attributes();
      all.push({ name: advance(), attributes: own });
      expect(":");
      passTo(`,${close}`, "(<", ")>");
      if (token === ",") advance();
    }
    advance();
    return all;
  }

  function block(): void {
    expect("{");
    scopes.push(new Set());
    while (token !== "}") statement();
    advance();
    scopes.pop();
  }

  /** Passes a block, a local, a loop, or a token of another statement. */
  function statement(): void {
    if (token === "{") block();
    else if (LOCALS.has(token)) local();
    else if (token === "for") {
      advance();
      scopes.push(new Set());
      expect("(");
      if (LOCALS.has(token)) local();
      passTo(")");
      advance();
      block();
      scopes.pop();
    } else pass();
  }

  function local(): void {
    advance();
    template();
    const name = advance();
    value();
    scopes.at(-1)?.add(name);
  }
}
