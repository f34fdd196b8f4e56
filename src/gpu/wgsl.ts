/** Links WGSL modules into one: each module's declared names get a prefix, at the declaration and at every use. */

/** How a module becomes a part of another one. */
export interface Link {
  /** Prefix of every name that the module declares. */
  readonly prefix: string;
  /** Added to the module's @binding numbers. */
  readonly firstBinding: number;
  /** Names that other parts declare, by the module's own names for them; its own declarations are removed. */
  readonly given?: Readonly<Record<string, string>>;
}

/** A module as a part of another one. */
export interface Part {
  readonly code: string;
  /** The module's entry point, which becomes a plain function. */
  readonly entry: {
    /** The expressions in `@workgroup_size`. */
    readonly workgroupSize: string;
    /** The `@builtin` of each parameter, in order. */
    readonly builtins: readonly string[];
  };
}

/**
 * Makes a module a part of another one. Locals, parameters, members and words in comments keep their names, even where
 * a declaration at module scope has the same name.
 *
 * @throws Error if the text is no module or has no entry point, or if it uses one of the new names already.
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

/** A module that reads from a uniform buffer those of its constants that compiling does not need. */
export interface UniformModule {
  readonly code: string;
  /** The former `override`s that the buffer at @group(1) @binding(0) holds, one word each, in this order. */
  readonly constants: readonly UniformConstant[];
}

export interface UniformConstant {
  readonly name: string;
  readonly type: "u32" | "i32" | "f32";
}

/** Names of the uniform's struct and of its variable. */
const UNIFORM = "Constants_";
const UNIFORM_VARIABLE = "constants_";

/**
 * Turns `override`s into members of a uniform buffer, so that dispatches with different constants share a pipeline.
 * It leaves those that workgroup sizes, workgroup memory or other declarations at module scope depend on.
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

/** A parsed module. Positions are indices of tokens; an end is the index after the last token. */
interface Module {
  /** The tokens of the text, white space and comments included. */
  readonly tokens: readonly string[];
  readonly declarations: readonly Declaration[];
  /** Where names of module scope are declared or used; this module, another one or WGSL itself declares them. */
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

/** Attributes by name; `inner` is the range in the parentheses. */
type Attributes = ReadonlyMap<string, { readonly whole: Range; readonly inner: Range }>;

/** A token: white space, a comment, a word, the digits of a number, or one character. Scopes need no finer ones. */
const TOKEN = /\s+|\/\/.*|\/\*[^]*?\*\/|[A-Za-z_]\w*|\d[\w.]*|[^]/g;
const WORD = /^[A-Za-z_]/;

const DIRECTIVES = new Set(["enable", "requires", "diagnostic"]);

/** Declarations at module scope that end with a semicolon. */
const VALUES = new Set(["var", "override", "const", "alias"]);

/** Keywords that declare a local of a function. Its name is in scope after the declaration's semicolon. */
const LOCALS = new Set(["let", "var", "const"]);

/** Attributes whose arguments are words, not expressions. */
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
  let at = -1; // index of the next token, which is never blank
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

  /** The range from token `from` up to the last non-blank one before this one. */
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

  /** Passes the rest of a declaration, and the semicolon that ends it. */
  function value(): void {
    passTo(";");
    advance();
  }

  /** Passes one token of a type, an expression or a statement; with `@` a whole attribute, with `.` the member too. */
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

  /** Passes a template list, such as that of `var<storage, read>`, where there is one. */
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
