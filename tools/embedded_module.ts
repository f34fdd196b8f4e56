/**
 * For a program in one file: writes replacements of the modules that read large files, and the text
 * that goes to the end of that file. The text holds each large file as base64 in a comment inside a
 * function; the program reads the comment from the function's source. At every start, V8 and Deno
 * spend a fraction of the time on a comment that they spend on a string.
 */

/** A generated module, and the text that the bundle with this module needs at its end. */
export interface EmbeddedModule {
  readonly path: string;
  readonly holders: string;
}

/** Writes the module for the files under `model` into the folder `output`. */
export async function writeEmbeddedModule(model: URL, output: string): Promise<EmbeddedModule> {
  const names = new Map<string, string>();
  const holders: string[] = [];
  for await (const path of filesUnder(model, "")) {
    const name = `eyrieFile${names.size}`;
    const bytes = await Deno.readFile(new URL(path, model));
    names.set(path, name);
    holders.push(`function ${name}() {\n//${bytes.toBase64()}\n}\n`);
  }
  const path = `${output}/embedded_files.ts`;
  await Deno.writeTextFile(path, moduleText(names));
  return { path, holders: holders.join("") };
}

/** Writes the replacement of src/grammar/package_text.ts. */
export async function writeGrammarModule(text: string, output: string): Promise<EmbeddedModule> {
  const path = `${output}/package_text.ts`;
  const bytes = new TextEncoder().encode(text);
  await Deno.writeTextFile(path, GRAMMAR_MODULE);
  return { path, holders: `function eyrieGrammar() {\n//${bytes.toBase64()}\n}\n` };
}

const GRAMMAR_MODULE = `declare function eyrieGrammar(): void;

export function packageText(): Promise<string> {
  const [, line = ""] = String(eyrieGrammar).split("\\n");
  return Promise.resolve(new TextDecoder().decode(Uint8Array.fromBase64(line.slice("//".length))));
}
`;

/**
 * Writes the replacement of kernels/texts.ts, which contains the text of every WGSL file under `kernels`.
 *
 * @returns the module's path.
 */
export async function writeTextsModule(kernels: URL, output: string): Promise<string> {
  const texts: Record<string, string> = {};
  for await (const path of filesUnder(kernels, "")) {
    if (!path.endsWith(".wgsl")) continue;
    texts[path.slice(0, -".wgsl".length)] = await Deno.readTextFile(new URL(path, kernels));
  }
  const path = `${output}/texts.ts`;
  await Deno.writeTextFile(
    path,
    `const TEXTS: Readonly<Record<string, string>> = ${JSON.stringify(texts, null, 1)};

export function textOf(path: string): string | undefined {
  return Object.hasOwn(TEXTS, path) ? TEXTS[path] : undefined;
}
`,
  );
  return path;
}

// Function declarations are hoisted: they exist before the first statement of a module runs, wherever they are.
function moduleText(names: ReadonlyMap<string, string>): string {
  const entries = [...names].map(([path, name]) => `  ${JSON.stringify(path)}: ${name},\n`);
  return `${[...names.values()].map((name) => `declare function ${name}(): void;\n`).join("")}
const FILES: Readonly<Record<string, () => void>> = {
${entries.join("")}};

// Decodes anew at each call, because the caller keeps a model's bytes only while it loads the model.
export function embeddedFile(path: string): Uint8Array | undefined {
  const holder = Object.hasOwn(FILES, path) ? FILES[path] : undefined;
  if (holder === undefined) return undefined;
  const [, line = ""] = String(holder).split("\\n");
  return Uint8Array.fromBase64(line.slice("//".length));
}
`;
}

/** Paths of the files from `folder`, in order; documentation is left out. */
async function* filesUnder(folder: URL, prefix: string): AsyncGenerator<string> {
  const entries = await Array.fromAsync(Deno.readDir(new URL(prefix, folder)));
  for (const { name, isDirectory } of entries.toSorted((a, b) => a.name < b.name ? -1 : 1)) {
    if (isDirectory) yield* filesUnder(folder, `${prefix}${name}/`);
    else if (!name.endsWith(".md")) yield `${prefix}${name}`;
  }
}
