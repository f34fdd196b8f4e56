/** Texts that are kept in files of the repository, so that a change of them shows up in a review. */
import assert from "node:assert/strict";

const ROOT = new URL("../", import.meta.url).pathname;

/** Set to 1, it has the files rewritten. */
const UPDATE = "UPDATE_GOLDEN";

/**
 * Asserts that a file has this text, or writes it where UPDATE_GOLDEN is 1.
 *
 * @param test `import.meta` of the test: its file is named in the command that rewrites the text.
 */
export async function assertGolden(
  file: URL,
  text: string,
  test: Pick<ImportMeta, "url">,
): Promise<void> {
  if (Deno.env.get(UPDATE) === "1") await Deno.writeTextFile(file, text);
  const golden = await Deno.readTextFile(file).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  });
  if (golden === text) return;
  const difference = golden === undefined
    ? "is not there"
    : `differs from what is made, in line ${differenceOf(golden, text)}`;
  assert.fail(
    `${pathOf(file)} ${difference}\nIf the new text is meant: ${UPDATE}=1 deno task test ` +
      `${pathOf(new URL(test.url))}, then read git diff`,
  );
}

function pathOf(file: URL): string {
  return file.pathname.replace(ROOT, "");
}

/** The number of the first line that is another one, and what both texts have there. */
function differenceOf(golden: string, text: string): string {
  const [before, after] = [golden.split("\n"), text.split("\n")];
  const at = after.findIndex((line, i) => line !== before[i]);
  const line = at < 0 ? after.length : at;
  const shown = (lines: readonly string[]) => lines[line] ?? "(the end)";
  return `${line + 1}:\n- ${shown(before)}\n+ ${shown(after)}`;
}
