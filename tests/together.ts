/**
 * Declares the tests of several files in one process, for the runner: modules that they share are loaded once, engines
 * share one software device. A report says of each test which file it is in.
 */
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The variable that names the files, from the root of the checkout, with spaces between them. */
export const FILES_VARIABLE = "EYRIE_TEST_FILES";

// One after the other: what a file opens while it loads, it opens alone, as in a process of its own.
for (const file of (Deno.env.get(FILES_VARIABLE) ?? "").split(" ").filter(Boolean)) {
  await import(pathToFileURL(resolve(ROOT, file)).href);
}
