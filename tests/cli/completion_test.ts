import assert from "node:assert/strict";
import { completionScript } from "../../src/cli/completion/completion.ts";
import { spellingsOf } from "../../src/cli/options/flag.ts";
import type { CommandName } from "../../src/cli/options/command.ts";
import { POLICY_NAMES } from "../../src/cli/options/option_speculation.ts";
import { COMMANDS, flagsOf } from "../../src/cli/options/commands.ts";

const BASH = completionScript("bash");

/** The words that bash offers at the end of a line. Bash treats `--flag=value` as three words. */
async function offered(...words: string[]): Promise<string[]> {
  const cwd = await Deno.makeTempDir();
  await Deno.mkdir(`${cwd}/a model`);
  await Deno.writeTextFile(`${cwd}/a file.jsonl`, "");
  const list = words.map((word) => `'${word}'`).join(" ");
  const script = `${BASH}
COMP_WORDS=(eyrie ${list}); COMP_CWORD=${words.length}
_eyrie 2> /dev/null
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { code, stdout } = await new Deno.Command("bash", {
    args: ["--norc", "-c", script],
    cwd,
    stderr: "inherit",
  }).output();
  await Deno.remove(cwd, { recursive: true });
  assert.equal(code, 0);
  return new TextDecoder().decode(stdout).split("\n").filter(Boolean);
}

Deno.test({
  name: "bash completes commands, flags, values, folders and files",
  ignore: Deno.build.os === "windows",
  async fn() {
    assert.deepEqual(await offered("ge"), ["generate"]);
    assert.deepEqual(await offered("r"), ["run", "rm"]);
    for (const command of Object.keys(COMMANDS) as CommandName[]) {
      const flags = Object.values(flagsOf(command)).flatMap(spellingsOf);
      const words = command.split(" ");
      assert.deepEqual(await offered(...words, "-"), [...flags, "-h", "--help"], command);
    }
    assert.deepEqual(await offered("generate", "--quantize", ""), ["q8", "q4"]);
    assert.deepEqual(await offered("generate", "--quantize", "=", "q4"), ["q4"]);
    assert.deepEqual(await offered("chat", "--policy", ""), POLICY_NAMES);
    assert.deepEqual(await offered("bench", "--policy", "stat"), ["static"]);
    assert.deepEqual(await offered("bench", "--policy", "ema,stat"), ["ema,static"]);
    assert.deepEqual(await offered("generate", "--policy", "ema,stat"), []);
    assert.deepEqual(await offered("generate", "--quantize", "="), ["q8", "q4"]);
    assert.deepEqual(await offered("run", "-m", "a"), ["a model"]);
    assert.deepEqual(await offered("run", ""), ["a model"]);
    assert.deepEqual(await offered("generate", "--batch", ""), ["a model", "a file.jsonl"]);
    assert.deepEqual(await offered("generate", "--seed", ""), []);
    assert.deepEqual(await offered("completion", "f"), ["fish"]);
    assert.deepEqual(await offered("be"), ["bench"]);
    assert.deepEqual(await offered("simulate", "--costs", "rtx"), ["rtx4090-7b"]);
    assert.deepEqual(await offered("serve", "--policy", "d"), ["dsd"]);
    assert.deepEqual(await offered("bench", "l"), ["load"]);
    assert.deepEqual(await offered("bench", "load", "--format", ""), [
      "md",
      "json",
      "jsonl",
      "html",
    ]);
    assert.deepEqual(await offered("bench", "--format", "c"), ["csv"]);
    assert.deepEqual(await offered("help", "dco"), []);
    assert.deepEqual(await offered("help", "doc"), ["doctor"]);
    assert.deepEqual(await offered("help", "s"), [
      ...["serve", "serve-command", "simulate", "sampling", "server"],
    ]);
    assert.deepEqual(await offered("serve", "--policy", "night"), ["nightjar", "nightjar-printed"]);
    assert.deepEqual(await offered("bench", "load", "--policy", "uc"), ["ucb"]);
    assert.deepEqual(await offered("simulate", "--policy", "lin"), ["lin-ts", "linucb"]);
  },
});

Deno.test("zsh and fish are told every flag of every command, and its values", () => {
  for (const shell of ["zsh", "fish"] as const) {
    const script = completionScript(shell);
    for (const command of Object.keys(COMMANDS) as CommandName[]) {
      assert.ok(command.split(" ").every((word) => script.includes(word)));
      for (const flag of Object.values(flagsOf(command))) {
        for (const spelling of spellingsOf(flag)) {
          const name = spelling.replace(/^-+/, "");
          const told = shell === "zsh"
            ? `${spelling}`
            : spelling.startsWith("--")
            ? `-l ${name}`
            : `-s ${name}`;
          assert.ok(script.includes(told), `${shell}: ${command} ${spelling}`);
        }
        if (flag.type === "choice") assert.ok(script.includes(flag.choices.join(" ")));
      }
    }
  }
});

Deno.test("zsh and fish complete the last word of a list with commas, as bash does", () => {
  const words = POLICY_NAMES.join(" ");
  const [zsh, fish] = [completionScript("zsh"), completionScript("fish")];
  assert.ok(zsh.includes(`)--policy=[`) && zsh.includes(`:_sequence compadd - ${words}'`));
  assert.ok(zsh.includes(`:(${words})'`), "a single policy of generate is not a list");
  assert.ok(fish.includes(`-l policy -x -a '(__eyrie_list ${words})'`));
  assert.ok(fish.includes(`-l policy -x -a '${words}'`));
  assert.match(fish, /^function __eyrie_list$/m);
});
