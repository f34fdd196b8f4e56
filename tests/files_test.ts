import { deepEqual, ok, throws } from "node:assert/strict";
import { LONGEST, processesOf, readArguments, testFiles } from "./files.ts";

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

Deno.test("files of a room share processes, but for the longest and those that say why not; a few share none", async () => {
  const root = await Deno.makeTempDir({ prefix: "eyrie-files-test-" });
  try {
    const names = Array.from({ length: 20 }, (_, i) => `tests/cli/a${i + 10}_test.ts`);
    const alone = "tests/cli/a15_test.ts";
    const below = "tests/cli/chat/b_test.ts";
    const other = "tests/gpu/c_test.ts";
    const files = [LONGEST[0] as string, ...names, below, other];
    for (const file of files) {
      await Deno.mkdir(`${root}/${file}`.replace(/\/[^/]*$/, ""), { recursive: true });
      const text = file === alone ? "// Alone: it ends its process.\n" : "// A test.\n";
      await Deno.writeTextFile(`${root}/${file}`, text);
    }
    const together = [...names.filter((name) => name !== alone), below];
    const processes = processesOf(files, root);
    deepEqual(processes.flat().toSorted(), files.toSorted());
    deepEqual(processes.filter((files) => files.length === 1), [[files[0]], [alone], [other]]);
    deepEqual(processes.filter((files) => files.length > 1), [
      together.slice(0, 16),
      together.slice(16),
    ]);
    deepEqual(processesOf(names.slice(0, 3), root), names.slice(0, 3).map((name) => [name]));
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
