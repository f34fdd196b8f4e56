/**
 * `deno task bundle`: writes one JavaScript file that needs no other files. The modules that read the
 * embedded model, the package of grammars and the WGSL files are replaced, through an import map, by
 * modules that contain them.
 */
import { fileURLToPath, pathToFileURL } from "node:url";
import { packageText } from "../src/grammar/package_text.ts";
import { writeEmbeddedModule, writeGrammarModule, writeTextsModule } from "./embedded_module.ts";
import denoJson from "../deno.json" with { type: "json" };

const ROOT = new URL("../", import.meta.url);

/**
 * Writes the bundle.
 * @throws Error when `deno bundle` fails; its messages are on stderr.
 */
export async function bundle(output: string): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-bundle-" });
  try {
    const embedded = await writeEmbeddedModule(new URL("models/fledgling/", ROOT), folder);
    const grammar = await writeGrammarModule(await packageText(), folder);
    const texts = await writeTextsModule(new URL("kernels/", ROOT), folder);
    const map = `${folder}/import_map.json`;
    const imports = importMap({
      "src/model/checkpoint/embedded_files.ts": embedded.path,
      "src/grammar/package_text.ts": grammar.path,
      "kernels/texts.ts": texts,
    });
    await Deno.writeTextFile(map, JSON.stringify({ imports }));
    await runBundle(map, output);
    const code = ascii(await Deno.readTextFile(output));
    await Deno.writeTextFile(output, code + embedded.holders + grammar.holders);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Escapes what is not ASCII: a single such letter would make V8 store every letter of the file in two bytes. */
function ascii(code: string): string {
  const escape = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return code.replaceAll(/[\u0080-\uffff]/g, escape);
}

// --import-map replaces the imports of deno.json, so they are repeated here.
function importMap(swapped: Readonly<Record<string, string>>): Record<string, string> {
  const urls = Object.entries(swapped)
    .map(([module, path]) => [new URL(module, ROOT).href, pathToFileURL(path).href]);
  return { ...denoJson.imports, ...Object.fromEntries(urls) };
}

async function runBundle(map: string, output: string): Promise<void> {
  const main = fileURLToPath(new URL("main.ts", ROOT));
  const child = new Deno.Command(Deno.execPath(), {
    args: ["bundle", "--quiet", "--import-map", map, "--output", output, main],
    cwd: ROOT,
    stdin: "null",
  }).spawn();
  const { code } = await child.status;
  if (code !== 0) throw new Error(`Cannot bundle "main.ts": deno bundle ended with code ${code}`);
}

if (import.meta.main) {
  const output = fileURLToPath(new URL("dist/eyrie.js", ROOT));
  await Deno.mkdir(new URL("dist", ROOT), { recursive: true });
  await bundle(output);
  const { size } = await Deno.stat(output);
  const text = `dist/eyrie.js, ${(size / 1e6).toFixed(1)} MB: deno run -A dist/eyrie.js generate\n`;
  await Deno.stdout.write(new TextEncoder().encode(text));
}
