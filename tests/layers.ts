/**
 * Lint rules of the house: who may import whom, named exports only, and no literal spread into a literal. Data goes one
 * way; a file imports from its own layer and from the ones listed for it.
 */

interface Layer {
  /** Other layers it may import from. */
  readonly from: readonly string[];
  /** May it use npm packages and node: modules, or the latter alone? The lowest use neither. */
  readonly packages: boolean | "node";
}

const LAYERS: Readonly<Record<string, Layer>> = {
  "main.ts": {
    from: [
      "src/cli",
      "src/measure",
      "src/engine",
      "src/grammar",
      "src/model",
      "deno.json",
    ],
    packages: true,
  },
  "src/cli": {
    from: [
      "src/serve",
      "src/measure",
      "src/remote",
      "src/simulate",
      "src/arrivals",
      "src/engine",
      "src/draft",
      "src/grammar",
      "src/model",
      "src/hub",
      "src/text",
      "src/speculate",
      "src/gpu",
      "presets",
      "docs",
      "deno.json",
    ],
    packages: true,
  },
  "src/serve": {
    from: [
      "src/engine",
      "src/grammar",
      "src/model",
      "src/text",
      "src/speculate",
      "src/gpu",
      "presets",
    ],
    packages: true,
  },
  "src/measure": {
    from: [
      "src/simulate",
      "src/arrivals",
      "src/engine",
      "src/remote",
      "src/text",
      "src/speculate",
      "src/quantiles.ts",
    ],
    packages: true,
  },
  "src/simulate": {
    from: ["src/arrivals", "src/engine", "src/speculate", "src/quantiles.ts"],
    packages: true,
  },
  "src/arrivals": { from: ["src/speculate", "src/quantiles.ts"], packages: false },
  "src/engine": {
    from: [
      "src/draft",
      "src/grammar",
      "src/model",
      "src/text",
      "src/speculate",
      "src/gpu",
      "kernels",
      "presets",
    ],
    packages: true,
  },
  "src/grammar": { from: ["src/text", "src/speculate"], packages: true },
  "src/draft": { from: ["src/speculate"], packages: false },
  "src/model": { from: ["src/text", "src/speculate", "src/gpu", "kernels"], packages: true },
  "src/hub": { from: [], packages: true },
  "src/remote": { from: [], packages: true },
  "src/text": { from: [], packages: true },
  "src/speculate": { from: [], packages: false },
  "kernels": { from: ["src/gpu"], packages: false },
  "src/gpu": { from: [], packages: "node" },
  "src/quantiles.ts": { from: [], packages: false },
  "src/errors.ts": { from: [], packages: false },
  "src/defined.ts": { from: [], packages: false },
  "src/objects.ts": { from: [], packages: false },
  "src/python_json.ts": { from: [], packages: false },
  "src/user_folders.ts": { from: [], packages: false },
};

const ERRORS = "src/errors.ts";
/** What every layer may import: pure functions of a few lines. */
const SHARED = ["src/defined.ts", "src/objects.ts", "src/python_json.ts", "src/user_folders.ts"];
/** Each file is one rewrite. What several need lies beside the folder. */
const REWRITES = "src/model/lower/rewrites/";
const ROOT = new URL("..", import.meta.url);

/** Why `file` may not import `specifier`, or undefined where it may; paths from the root. */
export function importFault(file: string, specifier: string): string | undefined {
  const layerName = layerOf(file);
  const layer = LAYERS[layerName];
  if (layer === undefined) return undefined; // tests, tools and benches import anything
  if (!/^\.{0,2}\//.test(specifier)) {
    const { packages } = layer;
    const may = packages === "node" ? specifier.startsWith("node:") : packages;
    return may ? undefined : `${layerName} imports no packages, but "${specifier}"`;
  }
  const path = new URL(specifier, new URL(file, ROOT)).href.slice(ROOT.href.length);
  if (file.startsWith(REWRITES) && path.startsWith(REWRITES)) {
    return `a rewrite may not import another one (${path}): each can be deleted`;
  }
  const target = layerOf(path);
  if (target === layerName || layer.from.includes(target)) return undefined;
  if (SHARED.includes(target) || target === ERRORS && layerName !== "src/speculate") {
    return undefined;
  }
  const allowed = layer.from.join(", ") || "nothing";
  return `${layerName} may not import from ${target} (outside itself it may: ${allowed})`;
}

/** True for files of the program: their exports are named. */
function isProgram(file: string): boolean {
  return file.startsWith("src/") || file.startsWith("kernels/");
}

/** The layer that a path from the root lies in, or else its first part. */
function layerOf(file: string): string {
  const [first = "", second = ""] = file.split("/");
  return first === "src" ? `src/${second}` : first;
}

function fromRoot(filename: string): string {
  const href = new URL(filename, ROOT).href;
  return href.startsWith(ROOT.href) ? href.slice(ROOT.href.length) : filename;
}

function createLayers(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  const file = fromRoot(context.filename);
  const check = (node: Deno.lint.Node, source: Deno.lint.Node | null): void => {
    if (source?.type !== "Literal" || typeof source.value !== "string") return;
    const message = importFault(file, source.value);
    if (message !== undefined) context.report({ node, message });
  };
  return {
    ImportDeclaration: (node) => check(node, node.source),
    ExportNamedDeclaration: (node) => check(node, node.source),
    ExportAllDeclaration: (node) => check(node, node.source),
    ImportExpression: (node) => check(node, node.source),
  };
}

function createNamedExports(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  if (!isProgram(fromRoot(context.filename))) return {};
  const message = "exports are named here: the importer should not choose the name";
  return {
    ExportDefaultDeclaration: (node) => context.report({ node, message }),
    ExportSpecifier: (node) => {
      const { exported } = node;
      const name = exported.type === "Identifier" ? exported.name : exported.value;
      if (name === "default") context.report({ node, message });
    },
  };
}

/** `{ ...{ a, b }, c }` says no more than `{ a, b, c }`. */
function createSpreadLiterals(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  return {
    "ObjectExpression > SpreadElement": (node: Deno.lint.SpreadElement) => {
      if (withoutCasts(node.argument).type !== "ObjectExpression") return;
      context.report({ node, message: "write the fields, not a literal that is spread" });
    },
  };
}

/** `[...["a", "b"], c]` says no more than `["a", "b", c]`, and only keeps the formatter from giving each its line. */
function createSpreadWords(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  const file = fromRoot(context.filename);
  if (!isProgram(file)) return {};
  return {
    "ArrayExpression > SpreadElement": (node: Deno.lint.SpreadElement) => {
      const argument = withoutCasts(node.argument);
      if (argument.type !== "ArrayExpression") return;
      const isWord = (each: Deno.lint.Node) =>
        each.type === "Literal" && typeof each.value === "string";
      if (!argument.elements.every(isWord)) return;
      context.report({ node, message: "write the words, not a list of them that is spread" });
    },
  };
}

/** What an expression is without the `as T` after it. */
function withoutCasts(of: Deno.lint.Node): Deno.lint.Node {
  return of.type === "TSAsExpression" ? withoutCasts(of.expression) : of;
}

const plugin: Deno.lint.Plugin = {
  name: "eyrie",
  rules: {
    "layers": { create: createLayers },
    "named-exports": { create: createNamedExports },
    "spread-literals": { create: createSpreadLiterals },
    "spread-words": { create: createSpreadWords },
  },
};

// Deno loads a plugin from its file's default export.
export default plugin;
