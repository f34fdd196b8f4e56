/** The shape of the source tree: which file imports which. */

const ROOT = new URL("..", import.meta.url);

/** Files of the program, by path from the root, with the files of the program that each imports. */
export type Imports = ReadonlyMap<string, readonly string[]>;

/** Reads main.ts, src/ and kernels/. */
export async function readImports(): Promise<Imports> {
  const files = ["main.ts"];
  for (const folder of ["src", "kernels"]) {
    for await (const file of filesUnder(folder)) if (file.endsWith(".ts")) files.push(file);
  }
  const imports = new Map<string, readonly string[]>();
  for (const file of files) {
    const text = await Deno.readTextFile(new URL(file, ROOT));
    const specifiers = [...text.matchAll(/^(?:import|export)\b[^;]*?from\s+"(\.[^"]+)"/gm)];
    const found = specifiers.map(([, specifier = ""]) =>
      new URL(specifier, new URL(file, ROOT)).href.slice(ROOT.href.length)
    );
    imports.set(file, found.filter((each) => files.includes(each)));
  }
  return imports;
}

/** Comments of more than 120 columns, which `deno fmt` leaves as they are, as FILE:LINE; links are not counted. */
export async function longComments(): Promise<string[]> {
  const found: string[] = [];
  for (const folder of ["src", "kernels", "lab", "tests", "tools"]) {
    for await (const file of filesUnder(folder)) {
      if (!/\.(ts|wgsl)$/.test(file)) continue;
      const lines = (await Deno.readTextFile(new URL(file, ROOT))).split("\n");
      for (const [i, line] of lines.entries()) {
        const isComment = /^\s*(\/\/|\/\*|\*)/.test(line) && !line.includes("://");
        if (isComment && [...line].length > 120) found.push(`${file}:${i + 1}`);
      }
    }
  }
  return found;
}

async function* filesUnder(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, ROOT))) {
    if (isDirectory) yield* filesUnder(`${folder}/${name}`);
    else yield `${folder}/${name}`;
  }
}

/** Groups of nodes that lead back to each other, each sorted (Tarjan's strongly connected parts). */
export function circles(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const path: string[] = [];
  const found: string[][] = [];
  function visit(node: string): number {
    const index = order.size;
    order.set(node, index);
    path.push(node);
    let low = index;
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) low = Math.min(low, visit(next));
      else if (path.includes(next)) low = Math.min(low, order.get(next) as number);
    }
    lowest.set(node, low);
    if (low === index) {
      const group = path.splice(path.indexOf(node));
      if (group.length > 1) found.push(group.toSorted());
    }
    return low;
  }
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return found;
}

/** The folder of a file. */
export function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf("/"));
}

/** The folder of a file at the depth at which imports go one way: `src/engine/device`, `kernels/norm`. */
export function upperFolderOf(file: string): string {
  return folderOf(file).split("/").slice(0, file.startsWith("src/") ? 3 : 2).join("/");
}

/** These folders and those that their files import from, themselves left out. */
export function folderImports(imports: Imports): Map<string, string[]> {
  const folders = new Map<string, string[]>();
  for (const [file, targets] of imports) {
    const folder = upperFolderOf(file);
    const others = targets.map(upperFolderOf).filter((other) => other !== folder);
    folders.set(folder, [...new Set([...folders.get(folder) ?? [], ...others])]);
  }
  return folders;
}
