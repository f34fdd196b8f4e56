import { equal } from "node:assert/strict";
import { bundle } from "../../tools/bundle.ts";

/** Runs the program in a folder that holds nothing else, without the project's configuration. */
async function runIn(folder: string, ...args: string[]): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-config", "--cached-only", "eyrie.js", ...args],
    cwd: folder,
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
    await t.step("inspect reads the model", async () => {
      const report = JSON.parse(await runIn(folder, "inspect", "--json"));
      equal(report.target.parameters, 6_426_880);
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
