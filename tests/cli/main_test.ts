import assert from "node:assert/strict";
import denoJson from "../../deno.json" with { type: "json" };
import { main } from "../../main.ts";
import type { CommandName } from "../../src/cli/options/command.ts";
import { COMMANDS, flagsOf } from "../../src/cli/options/commands.ts";
import { spellingsOf } from "../../src/cli/options/flag.ts";
import { receivedError, sentError } from "../../src/engine/worker/errors.ts";
import { OutOfMemory } from "../../src/gpu/device.ts";
import { fakeIo } from "./fake.ts";

Deno.test("main: what is printed goes to stdout, code 0", async () => {
  const io = fakeIo();
  assert.equal(await main(["--version"], io), 0);
  assert.equal(io.out(), `eyrie ${denoJson.version}\n`);
  assert.equal(await main(["-V"], io), 0);
  assert.equal(await main([], io), 0);
  assert.equal(io.err(), "");
});

Deno.test("main: a mistake is one line on stderr, code 2", async () => {
  const io = fakeIo();
  assert.equal(await main(["generate", "--top-p", "0"], io), 2);
  assert.equal(io.err(), 'eyrie: Cannot use "--top-p 0": allowed is a number above 0, at most 1\n');
  assert.equal(io.out(), "");
});

Deno.test("main: errors name the spelling that was typed, of every flag that has several", async () => {
  const said = async (line: string) => {
    const io = fakeIo();
    assert.equal(await main(line.split(" "), io), 2);
    return io.err().replace(/^eyrie: /, "").trimEnd();
  };
  const cases: [string, string][] = [
    [
      "generate -m m --num-steps 2",
      'Cannot use "--num-steps 2" with "-m": it needs a draft; give --draft MODEL',
    ],
    [
      "generate --model m --speculative-num-steps 2",
      'Cannot use "--speculative-num-steps 2" with "--model": it needs a draft; give --draft MODEL',
    ],
    [
      "generate --speculative-draft-model-path=none --num-steps=2",
      'Cannot use "--num-steps 2" with "--speculative-draft-model-path none": there is no drafter; allowed is 0',
    ],
    ["generate -mm --num-steps 2 --speculative-num-steps 3", "--num-steps 3"],
    ["generate -m m --steps 2", 'Cannot use "--steps 2" with "-m"'],
    ["generate --num-steps", 'Cannot use "--num-steps": INTEGER is missing'],
    ["generate -p x y", 'Cannot run "generate": too many arguments'],
    ["flyy --num-steps 2", 'Cannot run "flyy"'],
  ];
  for (const [line, message] of cases) {
    const text = await said(line);
    assert.ok(text.includes(message), `${line}: ${text}`);
  }
  for (const name of Object.keys(COMMANDS) as CommandName[]) {
    for (const flag of Object.values(flagsOf(name))) {
      for (const spelling of spellingsOf(flag)) {
        if (flag.type === "switch") continue;
        const text = await said(`${name} ${spelling}`);
        assert.ok(text.startsWith(`Cannot use "${spelling}": `), `${name} ${spelling}: ${text}`);
      }
    }
  }
});

Deno.test("main: a terminal obeys nothing of what an error quotes", async () => {
  const io = fakeIo();
  assert.equal(await main(["inspect", "/no/\x1b]0;title\x07\x9b2J"], io), 2);
  assert.ok(io.err().includes("/no/\uFFFD]0;title\uFFFD\uFFFD2J"), io.err());
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(io.err(), /[\x07\x1b\x9b]/);
});

Deno.test("main: nobody reads, nothing to say, code 0", async () => {
  const io = fakeIo({ stdoutBreaks: true });
  assert.equal(await main(["--help"], io), 0);
  assert.equal(io.err(), "");
});

Deno.test("main: a GPU that fails is one line, code 1, in the engine's thread too", async () => {
  const error = new OutOfMemory("The GPU reported: no memory");
  for (const thrown of [error, receivedError(sentError(error))]) {
    const io = fakeIo();
    const failing = {
      ...io,
      stdout: {
        ...io.stdout,
        write() {
          throw thrown;
        },
      },
    };
    assert.equal(await main(["--help"], failing), 1);
    assert.equal(io.err(), "eyrie: The GPU reported: no memory\n");
  }
});

Deno.test("main: anything else is a bug with its stack, code 1", async () => {
  const io = fakeIo();
  const broken = { ...io, stdout: { ...io.stdout, write: () => assert.fail("a bug") } };
  assert.equal(await main(["--help"], broken), 1);
  assert.match(io.err(), /^AssertionError.*a bug\n +at /);
});

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

/** Runs the real program as a person would. */
function eyrie(args: string[], permissions = ["-A"]): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", ...permissions, "--no-check", MAIN, ...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

Deno.test("the process gives the codes of main", async () => {
  const version = await eyrie(["--version"]).output();
  assert.equal(version.code, 0);
  const mistake = await eyrie(["generate", "--bogus"]).output();
  assert.equal(mistake.code, 2);
  assert.match(new TextDecoder().decode(mistake.stderr), /eyrie: Cannot use "--bogus"/);
});

Deno.test("a full disk behind stdout or --output is one line, code 1; behind stderr the code alone", async () => {
  const run = async (redirected: string) => {
    const line = `exec "$0" run -A --no-check "$1" ${redirected}`;
    const args = ["-c", line, Deno.execPath(), MAIN];
    const { code, stderr } = await new Deno.Command("sh", { args }).output();
    return [code, new TextDecoder().decode(stderr)];
  };
  const full = "eyrie: Cannot write to standard output: no space left\n";
  assert.deepEqual(await run("inspect > /dev/full"), [1, full]);
  assert.deepEqual(await run("inspect --model /none 2> /dev/full"), [2, ""]);
  const named = "breakeven --alpha 0.5 --draft-cost 0.1 --output /dev/full";
  assert.deepEqual(await run(named), [1, 'eyrie: Cannot write "/dev/full": no space left\n']);
});

Deno.test("a permission that Deno was not given is one line, code 2, in either thread", async () => {
  const cases: [string[], string[], RegExp][] = [
    [[], ["inspect"], /^eyrie: Cannot run: Requires read access to ".*, or with -A\n$/],
    [[], ["generate", "hi"], /^eyrie: Cannot run: Requires read access to ".*, or with -A\n$/],
    [["--allow-read"], ["generate", "hi"], /^eyrie: Cannot run: Requires env .*, or with -A\n$/],
  ];
  for (const [permissions, args, message] of cases) {
    const { code, stderr } = await eyrie(args, permissions).output();
    const text = new TextDecoder().decode(stderr);
    assert.equal(code, 2, text);
    assert.match(text, message);
  }
});
