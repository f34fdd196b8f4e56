/**
 * Which files a change can touch, for `deno task test --changed`. A file leads to what it imports, by a statement or by
 * `import()`, and to every file and folder of the repository whose path its text contains: a golden, a program that it
 * starts, a kernel. Paths in comments do not count.
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { UsageError } from "../src/errors.ts";

/** They may change what any test does. */
const EVERYTHING = ["deno.json", "deno.lock", "tests/deno.lock"];

/** Texts in which paths are looked for. */
const READABLE = /\.(ts|js|mjs|wgsl|html)$/;

/** Reads a file by its path from the root. */
export type Read = (path: string) => string;

/**
 * The files that each file leads to by itself.
 *
 * @param files of the repository, by path from its root.
 */
export function referencesOf(files: readonly string[], read: Read): Map<string, Set<string>> {
  const under = new Map<string, string[]>();
  for (const file of files) {
    for (let folder = dirname(file); folder !== "."; folder = dirname(folder)) {
      under.getOrInsertComputed(folder, () => []).push(file);
    }
  }
  const all = new Set(files);
  const found = (path: string): readonly string[] =>
    all.has(path) ? [path] : under.get(path.replace(/\/$/, "")) ?? [];
  const withPrefix = (prefix: string) =>
    (under.get(dirname(prefix)) ?? []).filter((file) => file.startsWith(prefix));
  return new Map(
    files.filter((file) => READABLE.test(file)).map((file) => {
      const text = read(file);
      const targets = file.endsWith(".wgsl")
        ? importsOf(text).flatMap(({ path, isWhole }) =>
          isWhole ? found(`kernels/${path}.wgsl`) : withPrefix(`kernels/${path}`)
        )
        : pathsIn(text).flatMap((path) => [
          ...found(join(dirname(file), path)),
          // A program that starts others names files from the root; FOLDER/NAME is a kernel.
          ...path.startsWith(".") ? [] : [
            ...isPlain(path) && !/^(tests|tools)\//.test(file) ? [] : found(path),
            ...found(`kernels/${path}.wgsl`),
            ...path.endsWith("/") ? found(`kernels/${path}`) : [],
          ],
        ]);
      return [file, new Set(targets)];
    }),
  );
}

/** A word that may be anything but a path: "tests" names a folder in a test, "docs" in a command is a word. */
function isPlain(path: string): boolean {
  return !/[./]/.test(path);
}

/** What `//#import` names, up to where a parameter is in it. */
function importsOf(wgsl: string): { readonly path: string; readonly isWhole: boolean }[] {
  return [...wgsl.matchAll(/^\s*\/\/#import (\S+)/gm)].map(([, named = ""]) => {
    const path = named.replace(/\$.*/, "");
    return { path, isWhole: path === named };
  });
}

/**
 * Everything in a text that may be a path: words with a slash or an ending, and quoted words. The root itself does not
 * count: otherwise every file that starts a process there would lead to everything.
 */
function pathsIn(text: string): string[] {
  const code = text.replaceAll(/^\s*(\/\/|\/\*|\*).*$/gm, "");
  const words = code.matchAll(/[\w.@-]+(?:\/[\w.@-]*)+|"[\w.-]+"|[\w-]+\.\w+/g);
  return [...new Set(words.map(([word]) => word.replaceAll('"', "")))]
    .filter((path) => !/^[./]*$/.test(path));
}

/**
 * The changed files, and all files that lead to one of them over any number of steps. Undefined: the change may touch
 * everything, as nothing says which files read one of the changed ones.
 */
export function touchedBy(
  changed: readonly string[],
  references: ReadonlyMap<string, ReadonlySet<string>>,
): Set<string> | undefined {
  const users = new Map<string, string[]>();
  for (const [file, targets] of references) {
    for (const target of targets) users.getOrInsertComputed(target, () => []).push(file);
  }
  const isRead = (file: string) => users.has(file) || file.endsWith("_test.ts");
  if (changed.some((file) => EVERYTHING.includes(file) || !isRead(file))) return undefined;
  const touched = new Set(changed);
  for (const file of touched) { // iterating a set also visits what is added meanwhile
    for (const user of users.get(file) ?? []) touched.add(user);
  }
  return touched;
}

/**
 * The test files of `files` that the difference between the working tree and a commit can touch.
 *
 * @param since what git calls a commit; a branch stands for where this one left it.
 * @throws UsageError where git knows no such commit.
 */
export function changedTests(files: readonly string[], since: string, root: string): string[] {
  const base = git(root, ["merge-base", "HEAD", since])[0];
  if (base === undefined) throw new UsageError(`Cannot compare with "${since}": no such commit`);
  const untracked = git(root, ["ls-files", "--others", "--exclude-standard"]);
  // A renamed file is gone from where it was: both paths count.
  const changed = [...git(root, ["diff", "--name-only", "--no-renames", base]), ...untracked];
  const all = new Set([...git(root, ["ls-files"]), ...changed]);
  const read = (file: string) => {
    const path = join(root, file);
    return existsSync(path) ? Deno.readTextFileSync(path) : ""; // absent: deleted
  };
  const touched = touchedBy(changed, referencesOf([...all], read));
  return touched === undefined ? [...files] : files.filter((file) => touched.has(file));
}

/** The lines that git prints; none where it fails. */
function git(root: string, args: readonly string[]): string[] {
  const { success, stdout } = new Deno.Command("git", {
    args: ["-c", "core.quotepath=off", ...args],
    cwd: root,
    stderr: "null",
  }).outputSync();
  return success ? new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "") : [];
}
