/** What `deno task test` runs: its arguments, the test files they name, the order of these. */
import { existsSync, globSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError } from "../src/errors.ts";

/** The arguments apart. */
export interface Asked {
  /** For each `deno test`. */
  readonly flags: readonly string[];
  /** Files and folders; none = all tests. */
  readonly paths: readonly string[];
}

/**
 * The files that take longest, the longest first: begun first, so that none runs on alone at the end.
 * Only a hint; a run prints its slowest tests.
 */
export const LONGEST: readonly string[] = [
  "tests/engine/lossless_test.ts",
  "tests/speculate/policies/registry_test.ts",
  "tests/engine/tune/costs_test.ts",
  "tests/engine/elastic_test.ts",
  "tests/engine/packed_rounds_test.ts",
  "tests/engine/standalone_test.ts",
  "tests/engine/scheduler_test.ts",
  "tests/engine/sampling_test.ts",
  "tests/engine/adaptive_test.ts",
  "tests/engine/callers_test.ts",
  "tests/engine/host_drafters_test.ts",
  "tests/engine/penalties_test.ts",
  "tests/engine/budgets_test.ts",
  "tests/engine/tree_drafts_test.ts",
  "tests/engine/proposals_test.ts",
  "tests/engine/draft_formats_test.ts",
  "tests/kernels/packed/packed_round_test.ts",
  "tests/kernels/attention_paths_test.ts",
  "tests/kernels/reject_test.ts",
  "tests/serve/chat_test.ts",
  "tests/tools/bundle_test.ts",
];

/** Words are paths, but for the one after `--filter`. */
export function readArguments(args: readonly string[]): Asked {
  const isPath = (word: string, i: number) => !word.startsWith("-") && args[i - 1] !== "--filter";
  return {
    flags: args.filter((word, i) => !isPath(word, i)),
    paths: args.filter(isPath),
  };
}

/**
 * Test files under the paths, from the root of the checkout, in the order to begin them.
 *
 * @param root the checkout's path; paths may be absolute too.
 * @throws UsageError where a path is not there.
 */
export function testFiles(paths: readonly string[], root: string): string[] {
  const found = paths.flatMap((path) => {
    const name = path.replace(/^\.\//, "").replace(/\/$/, "");
    if (!existsSync(resolve(root, name))) {
      throw new UsageError(`Cannot open "${path}": no such file`);
    }
    if (Deno.statSync(resolve(root, name)).isFile) return [name];
    return globSync(`${name}/**/*_test.ts`, { cwd: root }).toSorted();
  });
  const rank = (file: string) => (LONGEST.indexOf(file) + 1 || Infinity);
  return [...new Set(found)].toSorted((a, b) => rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0);
}
