import assert from "node:assert/strict";
import denoJson from "../../deno.json" with { type: "json" };
import { main } from "../../main.ts";
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

Deno.test("main: nobody reads, nothing to say, code 0", async () => {
  const io = fakeIo({ stdoutBreaks: true });
  assert.equal(await main(["--help"], io), 0);
  assert.equal(io.err(), "");
});

Deno.test("main: anything else is a bug with its stack, code 1", async () => {
  const io = fakeIo();
  const broken = { ...io, stdout: { ...io.stdout, write: () => assert.fail("a bug") } };
  assert.equal(await main(["--help"], broken), 1);
  assert.match(io.err(), /^AssertionError.*a bug\n +at /);
});

/** Runs the real program as a person would. */
function eyrie(args: string[]): Deno.Command {
  const file = new URL("../../main.ts", import.meta.url).pathname;
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", file, ...args],
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
