import { deepEqual, ok, throws } from "node:assert/strict";
import { LONGEST, readArguments, testFiles } from "./files.ts";

const ROOT = new URL("..", import.meta.url).pathname;

Deno.test("words are paths, but for a filter; the runner's own flags go to no test", () => {
  deepEqual(readArguments([]), { flags: [], paths: [], all: false });
  deepEqual(readArguments(["tests/gpu", "--filter", "tests", "--fail-fast", "a_test.ts"]), {
    flags: ["--filter", "tests", "--fail-fast"],
    paths: ["tests/gpu", "a_test.ts"],
    all: false,
  });
  deepEqual(readArguments(["--all", "--changed", "tests/gpu"]), {
    flags: [],
    paths: ["tests/gpu"],
    all: true,
    changedSince: "HEAD",
  });
  deepEqual(readArguments(["--changed=main"]).changedSince, "main");
});

Deno.test("an exhaustive file is left out of a folder, and stays where it is named or all are wanted", async () => {
  const root = await Deno.makeTempDir({ prefix: "eyrie-files-test-" });
  try {
    await Deno.mkdir(`${root}/tests`);
    await Deno.writeTextFile(`${root}/tests/long_test.ts`, "// Exhaustive: more of it.\n");
    await Deno.writeTextFile(`${root}/tests/short_test.ts`, "// See long_test.ts.\n");
    const [long, short] = ["tests/long_test.ts", "tests/short_test.ts"];
    deepEqual(testFiles(["tests"], root), [short]);
    deepEqual(testFiles(["tests"], root, { all: true }), [long, short]);
    deepEqual(testFiles([long as string], root), [long]);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("all test files are found, each once, the longest first", () => {
  const files = testFiles(["tests"], ROOT, { all: true });
  ok(files.length > 150 && files.includes("tests/files_test.ts"), `${files.length} files`);
  deepEqual(files.filter((file) => !file.endsWith("_test.ts")), []);
  // A file that was renamed would come anywhere.
  deepEqual(files.slice(0, LONGEST.length), LONGEST);
  deepEqual(
    testFiles(["./tests/gpu/", "tests/gpu/arena_test.ts", "tests"], ROOT, { all: true }).length,
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
