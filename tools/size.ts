/** `deno task size`: lines by file, longest last; files past the house's limit are marked. */

const ROOT = new URL("../", import.meta.url);
const LIMIT = 300;

async function* codeFiles(path: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(path, ROOT))) {
    if (isDirectory) yield* codeFiles(`${path}${name}/`);
    else if (/\.(ts|wgsl)$/.test(name)) yield `${path}${name}`;
  }
}

async function main(): Promise<string> {
  const files = ["main.ts"];
  for (const folder of ["src/", "shaders/"]) {
    files.push(...await Array.fromAsync(codeFiles(folder)));
  }
  const sizes = await Promise.all(files.map(async (file) => {
    const text = await Deno.readTextFile(new URL(file, ROOT));
    return { file, lines: text.split("\n").length - 1 };
  }));
  const row = (lines: number, text: string): string => `${`${lines}`.padStart(6)} ${text}\n`;
  const rows = sizes.toSorted((a, b) => a.lines - b.lines)
    .map(({ file, lines }) => row(lines, lines > LIMIT ? `${file}  over ${LIMIT}` : file));
  const total = sizes.reduce((sum, { lines }) => sum + lines, 0);
  return rows.join("") + row(total, `total, ${files.length} files`);
}

if (import.meta.main) await Deno.stdout.write(new TextEncoder().encode(await main()));
