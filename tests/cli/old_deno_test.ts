import { equal } from "node:assert/strict";
import { oldDeno } from "../../src/cli/old_deno.ts";

const MAIN = new URL("../../main.ts", import.meta.url).href;
const OLD = "Cannot run on Deno 2.5.0: it needs 2.9 or newer; deno upgrade";

Deno.test("the oldest Deno that Eyrie runs on", () => {
  const cases: [string, boolean][] = [
    ["2.9.0", true],
    ["2.9.6", true],
    ["2.10.0", true],
    ["3.0.0", true],
    ["2.9.0-rc.1+abcdef0", true],
    ["2.8.9", false],
    ["1.46.3", false],
  ];
  for (const [version, runs] of cases) equal(oldDeno(version) === undefined, runs, version);
  equal(oldDeno("2.5.0"), OLD);
});

Deno.test("on an older Deno every command is one line, before anything newer is called", async () => {
  // What a Deno of that age lacks throws where it is called.
  const program = `
    Object.defineProperty(Deno, "version", { value: { deno: "2.5.0", v8: "", typescript: "" } });
    delete Map.prototype.getOrInsertComputed;
    await import(${JSON.stringify(MAIN)});`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--ext=ts", program],
    stdin: "null",
  });
  const { code, stdout, stderr } = await child.output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  equal(err, `eyrie: ${OLD}\n`);
  equal(out, "");
  equal(code, 1);
});

Deno.test("main.ts imports the check of Deno's version before all else", async () => {
  const text = await Deno.readTextFile(new URL(MAIN));
  equal(/^import\b.*$/m.exec(text)?.[0], 'import "./src/cli/old_deno.ts";');
  const check = await Deno.readTextFile(new URL("./src/cli/old_deno.ts", MAIN));
  equal(/^import\b/m.exec(check), null);
});
