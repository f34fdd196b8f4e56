import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { changedTests, referencesOf, touchedBy } from "./changed.ts";
import { testFiles } from "./files.ts";

const ROOT = new URL("..", import.meta.url).pathname;

const TEXTS: Readonly<Record<string, string>> = {
  "src/a.ts": `import { b } from "./b.ts";\n// as tests/unread.txt\n`,
  "src/b.ts": `const c = await import("./c.ts");`,
  "src/c.ts": "",
  "src/worker.ts": "",
  "kernels/norm.ts": 'kernelOf("lib/norm", {}); kernelOf(`lib/deep/${name}`, {});',
  "kernels/lib/norm.wgsl": "//#import lib/weights_$weights\n",
  "kernels/lib/deep/sum.wgsl": "",
  "kernels/lib/weights_q8.wgsl": "  //#import lib/bits\n",
  "kernels/lib/bits.wgsl": "",
  "tests/a_test.ts": `import "../src/a.ts";`,
  "tests/golden_test.ts": "read(new URL(`golden/plans/${name}.txt`, import.meta.url));",
  "tests/golden/plans/x.txt": "",
  "tests/norm_test.ts": `import "../kernels/norm.ts";`,
  "tests/process_test.ts": `new Deno.Command("deno", { args: ["run", "src/a.ts"], cwd: "../" });`,
  "tests/thread_test.ts": `new Worker(new URL("../src/worker.ts", import.meta.url));`,
  "tests/room_test.ts": `for (const room of ["src"]) walk(room);`,
  "tests/unread.txt": "",
};

function touched(...changed: string[]): string[] | "everything" {
  const references = referencesOf(Object.keys(TEXTS), (path) => TEXTS[path] as string);
  const found = touchedBy(changed, references);
  if (found === undefined) return "everything";
  return [...found].filter((file) => file.endsWith("_test.ts"))
    .map((file) => file.slice("tests/".length, -"_test.ts".length)).toSorted();
}

Deno.test("a change touches what imports it, also by import(), in a worker and in a process", () => {
  deepEqual(touched("src/c.ts"), ["a", "process", "room"]);
  deepEqual(touched("src/worker.ts"), ["room", "thread"]);
  deepEqual(touched("tests/a_test.ts"), ["a"]);
  deepEqual(touched(), []);
});

Deno.test("a kernel's text touches what takes the kernel, through imports of texts, and of names in part", () => {
  deepEqual(touched("kernels/lib/bits.wgsl"), ["norm"]);
  deepEqual(touched("kernels/lib/deep/sum.wgsl"), ["norm"]);
});

Deno.test("a golden touches what reads its folder", () => {
  deepEqual(touched("tests/golden/plans/x.txt"), ["golden"]);
});

Deno.test("what nobody names, but for a comment, and what all depend on may touch everything", () => {
  equal(touched("tests/unread.txt"), "everything");
  equal(touched("src/c.ts", "deno.lock"), "everything");
});

Deno.test("in this repository a change of a small part leaves most tests out", () => {
  const files = testFiles(["tests"], ROOT);
  const { stdout } = new Deno.Command("git", { args: ["ls-files"], cwd: ROOT }).outputSync();
  const all = new TextDecoder().decode(stdout).trim().split("\n");
  const references = referencesOf(all, (path) => Deno.readTextFileSync(ROOT + path));
  const users = (path: string) => {
    const found = touchedBy([path], references);
    ok(found, path);
    return files.filter((file) => found.has(file));
  };
  ok(users("docs/models.md").includes("tests/docs_test.ts"));
  ok(users("kernels/lib/noise.wgsl").includes("tests/kernels/reject_test.ts"));
  ok(users("src/engine/schedule/scheduler.ts").includes("tests/engine/scheduler_test.ts"));
  const few = users("tests/golden/plans/llama2.txt");
  ok(few.length < files.length / 2, `${few.length} of ${files.length}`);
  throws(() => changedTests(files, "no-such-commit", ROOT), {
    name: "UsageError",
    message: 'Cannot compare with "no-such-commit": no such commit',
  });
});
