/** What `deno task test` runs: its arguments, the test files they name, the order of these. */
import { existsSync, globSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError } from "../src/errors.ts";
import { isExhaustiveFile } from "./exhaustive.ts";

/** Most files of one process: everything that they open is open at once. */
const MAX_TOGETHER = 16;

/** The arguments of the runner. */
export interface Arguments {
  /** Flags of each `deno test`. */
  readonly flags: readonly string[];
  /** Files and folders; none = all tests. */
  readonly paths: readonly string[];
  /** Whether exhaustive tests run too, see exhaustive.ts. */
  readonly all: boolean;
  /** A commit: only files that a change since it can touch, see changed.ts. */
  readonly changedSince?: string;
}

/**
 * The files that take longest, the longest first: begun first, so that none runs on alone at the end.
 * Only a hint; a run prints its slowest tests.
 */
export const LONGEST: readonly string[] = [
  "tests/lossless/array_test.ts",
  "tests/lossless/array_hardware_test.ts",
  "tests/engine/lossless_test.ts",
  "tests/engine/lossless_hardware_test.ts",
  "tests/engine/mixture_hardware_test.ts",
  "tests/engine/architectures_test.ts",
  "tests/speculate/policies/registry_test.ts",
  "tests/tools/bundle_test.ts",
  "tests/tools/npm_test.ts",
];

/** Words are paths, but for the one after `--filter`; `--all` and `--changed[=COMMIT]` are the runner's own. */
export function readArguments(args: readonly string[]): Arguments {
  const isPath = (word: string, i: number) => !word.startsWith("-") && args[i - 1] !== "--filter";
  const changed = args.find((word) => /^--changed(=|$)/.test(word));
  return {
    flags: args.filter((word, i) => !isPath(word, i) && word !== "--all" && word !== changed),
    paths: args.filter(isPath),
    all: args.includes("--all"),
    ...changed === undefined ? {} : { changedSince: changed.split("=")[1] || "HEAD" },
  };
}

/**
 * Test files under the paths, from the root of the checkout, in the order to begin them. Exhaustive files under a
 * folder are left out unless `all` are wanted.
 *
 * @param root the checkout's path; paths may be absolute too.
 * @throws UsageError where a path is not there.
 */
export function testFiles(
  paths: readonly string[],
  root: string,
  { all = false }: { readonly all?: boolean } = {},
): string[] {
  const runs = (file: string) =>
    all || !isExhaustiveFile(Deno.readTextFileSync(resolve(root, file)));
  const found = paths.flatMap((path) => {
    const name = path.replace(/^\.\//, "").replace(/\/$/, "");
    if (!existsSync(resolve(root, name))) {
      throw new UsageError(`Cannot open "${path}": no such file`);
    }
    if (Deno.statSync(resolve(root, name)).isFile) return [name];
    return globSync(`${name}/**/*_test.ts`, { cwd: root }).toSorted().filter(runs);
  });
  const rank = (file: string) => (LONGEST.indexOf(file) + 1 || Infinity);
  return [...new Set(found)].toSorted((a, b) => rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0);
}

/**
 * The files by the process that runs them, in order: those that take longest and those that begin with a line
 * `// Alone: why` have one each, the others share one with files of their folder. A few files have one each, too.
 *
 * @param files from the root, those of a folder side by side.
 */
export function processesOf(files: readonly string[], root: string): string[][] {
  if (files.length <= MAX_TOGETHER / 2) return files.map((file) => [file]);
  const processes: string[][] = [];
  let shared: string[] = [];
  let last = "";
  for (const file of files) {
    const text = Deno.readTextFileSync(resolve(root, file));
    if (LONGEST.includes(file) || text.startsWith("// Alone: ")) {
      processes.push([file]);
      continue;
    }
    // tests/ROOM/FOLDER/name_test.ts is with its room.
    const room = file.split("/").slice(0, -1)[1] ?? "";
    if (room !== last || shared.length === MAX_TOGETHER) processes.push(shared = []);
    shared.push(file);
    last = room;
  }
  return processes;
}
