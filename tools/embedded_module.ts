/** Writes the replacement of src/model/checkpoint/embedded_files.ts that holds the files itself. */

/**
 * Writes the module and what it imports into `output` and gives the module's path. Each file becomes
 * a text import of its own: parsed as JavaScript, megabytes of base64 take the bundler long.
 */
export async function writeEmbeddedModule(model: URL, output: string): Promise<string> {
  const imports: string[] = [];
  const entries: string[] = [];
  for await (const path of filesUnder(model, "")) {
    const name = `file${imports.length}`;
    const bytes = await Deno.readFile(new URL(path, model));
    await Deno.writeTextFile(`${output}/${name}.txt`, bytes.toBase64());
    imports.push(`import ${name} from "./${name}.txt" with { type: "text" };\n`);
    entries.push(`  ${JSON.stringify(path)}: ${name},\n`);
  }
  const module = `${output}/embedded_files.ts`;
  await Deno.writeTextFile(module, moduleText(imports.join(""), entries.join("")));
  return module;
}

function moduleText(imports: string, entries: string): string {
  return `${imports}
const FILES: Readonly<Record<string, string>> = {
${entries}};

// Decoded anew at each call: who opens a model keeps its bytes only while loading.
export function embeddedFile(path: string): Uint8Array | undefined {
  const text = Object.hasOwn(FILES, path) ? FILES[path] : undefined;
  return text === undefined ? undefined : Uint8Array.fromBase64(text);
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
