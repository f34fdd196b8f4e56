import { equal, ok } from "node:assert/strict";
import { bundle } from "../../tools/bundle.ts";

const PROMPT = "Count from 1 to 9.";
const ANSWER = "1, 2, 3, 4, 5, 6, 7, 8, 9.\n";

/** Runs the program in a folder that holds nothing else, without the project's configuration. */
async function runIn(folder: string, ...args: string[]): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-config", "--cached-only", "eyrie.js", ...args],
    cwd: folder,
    env: { DENO_DIR: `${folder}/deno` },
    stdin: "null",
  });
  const { code, stdout, stderr } = await child.output();
  equal(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test("the bundle alone in an empty folder runs with its embedded model", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-bundle-test-" });
  try {
    await bundle(`${folder}/eyrie.js`);
    await t.step("--version", async () => {
      equal(await runIn(folder, "--version"), "eyrie 0.1.0\n");
    });
    await t.step("a start reads the model as comments in ASCII", async () => {
      const text = await Deno.readTextFile(`${folder}/eyrie.js`);
      // deno-lint-ignore no-control-regex
      equal(text.search(/[^\x00-\x7f]/), -1);
      const longest = text.split("\n").filter((line) => line.length > 500_000);
      equal(longest.map((line) => line.slice(0, 2)).join(" "), "// // //");
    });
    await t.step("a start leaves what V8 compiled for the next one", async () => {
      const kept = await Array.fromAsync(
        Deno.readDir(`${folder}/deno`),
        async ({ name }) =>
          name.startsWith("v8_code_cache") ? (await Deno.stat(`${folder}/deno/${name}`)).size : 0,
      );
      ok(Math.max(...kept) > 200_000, `${kept} bytes`);
    });
    await t.step("inspect reads the model", async () => {
      const report = JSON.parse(await runIn(folder, "inspect", "--json"));
      equal(report.target.parameters, 6_426_880);
    });
    await t.step("generate answers with the EAGLE-3 head", async () => {
      equal(await runIn(folder, "generate", "--temperature", "0", PROMPT), ANSWER);
    });
    await t.step("generate answers the same with the EAGLE-1 head", async () => {
      const args = ["--temperature", "0", "--json", "--speculative-algorithm", "EAGLE"];
      const { text, speculative } = JSON.parse(await runIn(folder, "generate", ...args, PROMPT));
      equal(`${text}\n`, ANSWER);
      equal(speculative.algorithm, "EAGLE");
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
