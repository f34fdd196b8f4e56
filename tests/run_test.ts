// The runner itself: what fails or crashes in one of its processes is counted, named and shown.
import { equal, match, ok } from "node:assert/strict";
import { drawn } from "./exhaustive.ts";

const FILES = {
  passes: `Deno.test("good", () => {}); Deno.test("good too", () => {});`,
  fails:
    `Deno.test("good", () => {}); Deno.test("bad", () => { throw new Error("why it fails"); });`,
  crashes: `Deno.test("gone", () => Deno.kill(Deno.pid, "SIGKILL"));`,
  throws: `throw new Error("why it does not load");`,
};

const LONG = `import { exhaustive } from "${new URL("exhaustive.ts", import.meta.url)}";
  exhaustive.test("long", () => {}); Deno.test("short too", () => {});`;

function runner(...args: readonly string[]): Promise<Deno.CommandOutput> {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "tests/run.ts", ...args],
    cwd: new URL("..", import.meta.url),
    env: { NO_COLOR: "1", EYRIE_TEST_ALL: "" },
  }).output();
}

async function run(files: Readonly<Record<string, string>>, ...flags: string[]) {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-run-test-" });
  try {
    for (const [name, code] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${name}_test.ts`, code);
    }
    const paths = Object.keys(files).map((name) => `${folder}/${name}_test.ts`);
    const { code, stdout } = await runner(...paths, ...flags);
    const text = new TextDecoder().decode(stdout);
    return { code, text, last: text.trimEnd().split("\n").at(-1) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("the runner counts, names and shows what fails, crashes or does not load, and says how long all took", async () => {
  const { code, text, last } = await run({ ...FILES, long: LONG });
  equal(last, "4 passed, 3 failed, 1 skipped");
  equal(code, 1);
  match(text, /why it fails/);
  match(text, /why it does not load/);
  for (const end of ["fails_test.ts: exit code 1", "crashes_test.ts: SIGKILL"]) {
    match(text, new RegExp(`^FAILED .*${end}$`, "m"));
  }
  // Told again at the end, where nobody has to look for it.
  match(
    text,
    /\nFAILED .*crashes_test.ts: 0 passed, 1 failed\n[^]*\d minutes(, \d+\.\d minutes of CPU)?\n4 passed, 3 failed, 1 skipped\n$/,
  );
  match(
    text,
    /The slowest tests:[^]*why it fails[^]*\nFAILED .*fails_test.ts: 1 passed, 1 failed\n/,
  );
});

drawn.test("of files that share a process the runner says which one failed, crashed or did not load", async () => {
  const many = Object.fromEntries(
    Array.from({ length: 7 }, (_, i) => [`passes${i}`, `Deno.test("good ${i}", () => {});`]),
  );
  const { fails, crashes, throws } = FILES;
  const one = await run({ ...many, fails, more: `Deno.test("good too", () => {});` });
  equal(one.last, "9 passed, 1 failed");
  match(one.text, /9 files from .*passes0_test.ts on: 9 passed, 1 failed\n/);
  match(
    one.text,
    /The slowest tests:[^]*why it fails[^]*\nFAILED .*fails_test.ts: 1 passed, 1 failed\n/,
  );
  const two = await run({ ...many, crashes, throws });
  equal(two.last, "7 passed, 2 failed");
  for (const name of ["crashes", "throws"]) {
    match(two.text, new RegExp(`\\nFAILED .*${name}_test.ts: 0 passed, 1 failed\\n`));
  }
  equal(two.code, 1);
});

Deno.test("the runner hands flags on, runs exhaustive tests with --all, and types are checked before anything runs", async () => {
  const { passes } = FILES;
  const other = `Deno.test("another", () => {});`;
  const one = await run({ passes, other, long: LONG }, "--filter", "/too|long/", "--all");
  equal(one.last, "3 passed, 0 failed");
  ok(!one.text.includes("other_test.ts"), one.text);
  equal(one.code, 0);
  const wrong = await run({ passes, wrong: `const n: number = "x"; Deno.test("" + n, () => {});` });
  equal(wrong.last, "0 passed, 1 failed");
  match(wrong.text, /FAILED types/);
});

Deno.test("the runner tells a file that is not there in one line", async () => {
  const { code, stdout, stderr } = await runner("tests/missing_test.ts");
  const text = new TextDecoder().decode(stderr);
  equal(text, 'Cannot open "tests/missing_test.ts": no such file\n');
  equal(stdout.length, 0);
  equal(code, 2);
});
