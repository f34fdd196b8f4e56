import assert from "node:assert/strict";
import { assertGolden } from "../golden_text.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import type { CommandName } from "../../src/cli/options/command.ts";
import { COMMANDS, flagsOf } from "../../src/cli/options/commands.ts";
import { spellingsOf } from "../../src/cli/options/flag.ts";

function printed(...args: string[]): string {
  const invocation = parseArguments(args);
  assert.ok(invocation.command === "print");
  return invocation.text;
}

/** Help is a public text: a change shows up in review. */
const golden = (name: string, text: string): Promise<void> =>
  assertGolden(new URL(`./golden/${name}.txt`, import.meta.url), text, import.meta);

Deno.test("eyrie --help", () => golden("help", printed("--help")));
for (const command of Object.keys(COMMANDS)) {
  const name = `help_${command.replace(" ", "_")}`;
  Deno.test(`eyrie ${command} --help`, () =>
    golden(name, printed(...command.split(" "), "--help")));
}
for (const command of ["generate", "bench load"]) {
  const name = `help_${command.replace(" ", "_")}_all`;
  Deno.test(`eyrie ${command} --help all`, () =>
    golden(name, printed(...command.split(" "), "--help", "all")));
}

Deno.test("--help has what is needed first, --help all every flag", () => {
  for (const name of Object.keys(COMMANDS) as CommandName[]) {
    const words = name.split(" ");
    const [short, all] = [printed(...words, "--help"), printed(...words, "--help", "all")];
    assert.equal(printed("help", ...words, "all"), all);
    const flags = Object.values(flagsOf(name));
    const listed = (text: string) =>
      flags.filter((flag) => text.includes(`\n  ${spellingsOf(flag).join(", ")}`));
    assert.deepEqual(listed(all), flags, name);
    assert.ok(listed(short).length <= 16, `${name}: ${listed(short).length} flags`);
    assert.ok(short.split("\n").length < 100, `${name}: ${short.split("\n").length} lines`);
    const note = `These are ${listed(short).length} of ${flags.length} flags; all: eyrie ${name}`;
    if (flags.length <= 16) assert.ok(all.startsWith(short));
    else assert.ok(short.endsWith(`\n\n${note} --help all\n`), name);
  }
});

Deno.test("help fits 80 columns and opens with two examples, which can be run", () => {
  for (const name of ["", ...Object.keys(COMMANDS)]) {
    const lines = printed(...name.split(" ").filter(Boolean), "--help").split("\n");
    const wide = lines.filter((line) => line.length > 80);
    assert.deepEqual(wide, [], name);
    const at = lines.indexOf("Examples:");
    assert.ok(at <= 3, "after the summary");
    const examples = lines.slice(at + 1, at + 3).map((line) => line.replace(/ > .*/, ""));
    for (const example of examples) {
      const [program, ...args] = example.trim().replaceAll(/'[^']*'/g, "text").split(" ");
      assert.equal(program, "eyrie");
      assert.doesNotThrow(() => parseArguments(args), example);
    }
  }
});

Deno.test("help has other ways in", () => {
  assert.equal(printed(), printed("--help"));
  assert.equal(printed("help"), printed("-h"));
  assert.equal(printed("help", "chat"), printed("chat", "-h"));
  assert.equal(printed("check", "--help"), printed("help", "check"));
  assert.equal(printed("bench", "load", "-h"), printed("help", "bench", "load"));
  assert.notEqual(printed("bench", "load", "-h"), printed("help", "bench"));
});
