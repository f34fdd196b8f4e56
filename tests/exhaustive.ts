/**
 * Tests that `deno task test --all` runs and `deno task test` leaves out: more shapes, formats or prompts of what a
 * shorter test shows. A file whose every test is one begins with a line `// Exhaustive: why`; it runs where its
 * path is named, too. Of tests that are drawn every run has some, which the commit's hash chooses.
 */
import { mix32 } from "../src/speculate/noise.ts";

/** The variable that the runner sets for `--all`; it may also be set for a plain `deno test`. */
export const ALL_VARIABLE = "EYRIE_TEST_ALL";

/** Whether exhaustive tests run: also to choose a longer list of shapes, or more rounds of a random test. */
export const EXHAUSTIVE: boolean = Deno.env.get(ALL_VARIABLE) === "1";

/** The variable that repeats what a run drew: the number that the run printed. */
export const SEED_VARIABLE = "EYRIE_TEST_SEED";

/** Chooses what is drawn. It differs in every commit, so that the runs of CI see all of it in time. */
export const SEED: number = seedOf();

function seedOf(): number {
  const given = Deno.env.get(SEED_VARIABLE);
  if (given) return Number(given);
  const { success, stdout } = new Deno.Command("git", {
    args: ["rev-parse", "HEAD"],
    cwd: new URL("..", import.meta.url),
    stderr: "null",
  }).outputSync();
  // A tarball of the sources has no commit.
  return success ? parseInt(new TextDecoder().decode(stdout).slice(0, 7), 16) : 1;
}

/** A run has one in this many of the drawn tests. */
const DRAWN_OF = 16;

/** A u32 that differs from text to text and from commit to commit. */
function drawnNumber(text: string): number {
  return [...text].reduce((hash, each) => mix32(hash ^ each.charCodeAt(0)), SEED);
}

/** One of these values in each run, drawn by `whom`: for tests that would take long with several values. */
export function drawnFrom<T>(values: readonly T[], whom: string = values.join()): T {
  return values[drawnNumber(whom) % values.length] as T;
}

interface Declares {
  test(name: string, fn: (context: Deno.TestContext) => void | Promise<void>): void;
}

/**
 * `exhaustive.test` declares a test as `Deno.test` does, which is ignored unless exhaustive tests run. For the tests
 * of a table of which some always run: `const { test } = isShort ? Deno : exhaustive`.
 */
export const exhaustive: Declares = {
  test(name, fn): void {
    Deno.test({ name, fn, ignore: !EXHAUSTIVE });
  },
};

/**
 * `drawn.test` declares a test that always runs with the exhaustive ones; in other runs its name decides whether it is
 * drawn. What only it would compile or compare is thus seen every few commits. A case in which a defect was once found
 * is not drawn: it always runs.
 */
export const drawn: Declares = {
  test(name, fn): void {
    Deno.test({ name, fn, ignore: !EXHAUSTIVE && drawnNumber(name) % DRAWN_OF !== 0 });
  },
};

/** Whether the text of a test file says that all of it is exhaustive. */
export function isExhaustiveFile(text: string): boolean {
  return text.startsWith("// Exhaustive: ");
}
