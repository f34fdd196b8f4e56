import { deepEqual, ok, throws } from "node:assert/strict";
import { LONGEST, readArguments, testFiles } from "./files.ts";

const ROOT = new URL("..", import.meta.url).pathname;

Deno.test("words are paths, but for a filter", () => {
  deepEqual(readArguments([]), { flags: [], paths: [] });
  deepEqual(readArguments(["tests/gpu", "--filter", "tests", "--fail-fast", "a_test.ts"]), {
    flags: ["--filter", "tests", "--fail-fast"],
    paths: ["tests/gpu", "a_test.ts"],
  });
});

Deno.test("all test files are found, each once, the longest first", () => {
  const files = testFiles(["tests"], ROOT);
  ok(files.length > 150 && files.includes("tests/files_test.ts"), `${files.length} files`);
  deepEqual(files.filter((file) => !file.endsWith("_test.ts")), []);
  // A file that was renamed would come anywhere.
  deepEqual(files.slice(0, LONGEST.length), LONGEST);
  deepEqual(
    testFiles(["./tests/gpu/", "tests/gpu/arena_test.ts", "tests"], ROOT).length,
    files.length,
  );
});

Deno.test("a file stays itself, a path that is not there is told", () => {
  deepEqual(testFiles(["tests/gpu/device.ts"], ROOT), ["tests/gpu/device.ts"]);
  throws(() => testFiles(["tests/gpu", "tests/nowhere"], ROOT), {
    name: "UsageError",
    message: 'Cannot open "tests/nowhere": no such file',
  });
});
