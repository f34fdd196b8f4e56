/**
 * Tests that `deno task test --all` runs and `deno task test` leaves out: more shapes, formats or prompts of what a
 * shorter test shows. A file whose every test is one begins with a line `// Exhaustive: why`; it runs where its
 * path is named, too.
 */

/** The runner sets it for `--all`; so may who runs `deno test` alone. */
export const ALL_VARIABLE = "EYRIE_TEST_ALL";

/** Whether exhaustive tests run: also to choose a longer list of shapes, or more rounds of a random test. */
export const EXHAUSTIVE: boolean = Deno.env.get(ALL_VARIABLE) === "1";

/**
 * `exhaustive.test` declares a test as `Deno.test` does, which is ignored unless exhaustive tests run. For the tests
 * of a table of which some always run: `const { test } = isShort ? Deno : exhaustive`.
 */
export const exhaustive = {
  test(name: string, fn: (context: Deno.TestContext) => void | Promise<void>): void {
    Deno.test({ name, fn, ignore: !EXHAUSTIVE });
  },
};

/** Whether the text of a test file says that all of it is exhaustive. */
export function isExhaustiveFile(text: string): boolean {
  return text.startsWith("// Exhaustive: ");
}
