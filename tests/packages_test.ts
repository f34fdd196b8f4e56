import { deepEqual, equal, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { readPages } from "./docs.ts";
import denoJson from "../deno.json" with { type: "json" };

/**
 * Every `deno run` and `deno task` downloads all that deno.lock names. What tests and tools alone import
 * is written out in their imports and locked in tests/deno.lock.
 */
const ROOT = new URL("..", import.meta.url);

/**
 * Bytes of packages that an install may take. What Deno compiles of this program (12 MB) and keeps of
 * the registry and of its own comes on top: an install is 40 MB.
 */
const MAX_BYTES = 27e6;

interface Lock {
  readonly specifiers: Readonly<Record<string, string>>;
  readonly npm: Readonly<Record<string, unknown>>;
}

async function readLock(path: string): Promise<Lock> {
  return JSON.parse(await Deno.readTextFile(new URL(path, ROOT)));
}

/** What a module imports, also when it is needed only: relative paths, and names of packages. */
function specifiersIn(text: string): string[] {
  const statements =
    /^(?:import|export)\s[^;="']*?\sfrom\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\(\s*"([^"]+)"/gm;
  return [...text.matchAll(statements)].flatMap((found) => found.slice(1).filter((each) => each));
}

/** Packages that a module and all that it leads to import, each with a module that does. */
async function packagesOf(module: string): Promise<Map<string, string>> {
  const packages = new Map<string, string>();
  const seen = new Set<string>();
  const queue = [module];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    const url = new URL(file, ROOT);
    for (const specifier of specifiersIn(await Deno.readTextFile(url))) {
      if (specifier.startsWith("node:")) continue;
      if (!specifier.startsWith(".")) packages.set(specifier, file);
      else if (specifier.endsWith(".ts")) {
        queue.push(new URL(specifier, url).href.slice(ROOT.href.length));
      }
    }
  }
  return packages;
}

/** The key of deno.json's imports for a specifier: "openai/helpers/zod" is of "openai". */
function nameOf(specifier: string): string {
  return specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
}

Deno.test("the program imports packages of deno.json's alone, and those are there for it", async () => {
  const packages = await packagesOf("main.ts");
  ok(packages.size > 10, `${packages.size} packages`);
  const known = Object.keys(denoJson.imports);
  const unknown = [...packages].filter(([specifier]) => !known.includes(nameOf(specifier)));
  deepEqual(unknown, []);
  const used = new Set([...packages.keys()].map(nameOf));
  deepEqual(known.filter((name) => !used.has(name)), []);
});

Deno.test("deno.lock names no package but those of deno.json and their types", async () => {
  const { specifiers } = await readLock("deno.lock");
  const own = Object.values(denoJson.imports).map((each) => /^npm:@?[^@]+@[^/]+/.exec(each)?.[0]);
  const others = Object.keys(specifiers)
    .filter((each) => !own.includes(each) && !each.startsWith("npm:@types/"));
  const mend =
    "a `deno test` or `deno cache` without --lock tests/deno.lock: git checkout deno.lock";
  deepEqual(others, [], mend);
});

Deno.test("commands of tools that import other packages leave deno.lock as it is", async () => {
  const files = [...await readPages()];
  for (const folder of ["lab", "tools"]) {
    const paths = await Array.fromAsync(Deno.readDir(new URL(folder, ROOT)));
    for (const { name } of paths.filter(({ name }) => name.endsWith(".ts"))) {
      const path = `${folder}/${name}`;
      files.push([path, await Deno.readTextFile(new URL(path, ROOT))]);
    }
  }
  const changing: string[] = [];
  for (const [file, text] of files) {
    for (
      const [command, flags = "", module = ""] of text.matchAll(
        /deno run ((?:-\S+ |tests\/deno\.lock )*)((?:lab|tools)\/[\w/]+\.ts)/g,
      )
    ) {
      if (flags.includes("--lock tests/deno.lock")) continue;
      const packages = [...(await packagesOf(module)).keys()];
      if (packages.some((each) => each.startsWith("npm:"))) changing.push(`${file}: ${command}`);
    }
  }
  deepEqual(changing, []);
});

/** What a folder takes on a disk whose blocks are 4 KiB, as `du` counts. */
async function diskBytes(folder: string): Promise<number> {
  let bytes = 4096;
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    bytes += isDirectory
      ? await diskBytes(path)
      : Math.ceil((await Deno.stat(path)).size / 4096) * 4096;
  }
  return bytes;
}

/** What Deno says when it is asked about the program, with deno.lock as it is. */
async function deno(...args: string[]): Promise<string> {
  const cwd = fileURLToPath(ROOT);
  const child = new Deno.Command(Deno.execPath(), { args, cwd, stdin: "null", stderr: "inherit" });
  const { code, stdout } = await child.output();
  equal(code, 0, `deno ${args.join(" ")}`);
  return new TextDecoder().decode(stdout);
}

Deno.test("the packages of an install are small enough, and deno.lock names them all", async () => {
  await deno("cache", "--quiet", "--frozen", "main.ts");
  const info = JSON.parse(await deno("info", "--json", "main.ts")) as {
    npmPackages: Record<string, { localPath: string }>;
  };
  const { npm } = await readLock("deno.lock");
  deepEqual(Object.keys(info.npmPackages).toSorted(), Object.keys(npm).toSorted());
  const sizes: [name: string, bytes: number][] = [];
  for (const [name, { localPath }] of Object.entries(info.npmPackages)) {
    sizes.push([name, await diskBytes(localPath)]);
  }
  const bytes = sizes.reduce((sum, [, size]) => sum + size, 0);
  const largest = sizes.toSorted(([, a], [, b]) => b - a).slice(0, 10)
    .map(([name, size]) => `${(size / 1e6).toFixed(1)} MB ${name}`);
  ok(bytes > 1e6 && bytes <= MAX_BYTES, `${bytes} bytes, most of them:\n${largest.join("\n")}`);
});

Deno.test("tests run with the versions that users have", async () => {
  const [users, tests] = await Promise.all(["deno.lock", "tests/deno.lock"].map(readLock));
  deepEqual(Object.keys(users?.npm ?? {}).filter((each) => !(each in (tests?.npm ?? {}))), []);
});

Deno.test("what a module imports is found in all its forms", () => {
  const text = `import a from "one";
import {
  type B,
  b,
} from "./two.ts";
import "three";
export { c } from "four/five";
const d = await import("six");
const e = import(
  "seven",
  { with: { type: "text" } }
);`;
  deepEqual(specifiersIn(text), ["one", "./two.ts", "three", "four/five", "six", "seven"]);
  deepEqual(["openai/helpers/zod", "@a/b/c", "ai"].map(nameOf), ["openai", "@a/b", "ai"]);
});
