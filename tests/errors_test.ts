import { equal, ok } from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { reason, UsageError } from "../src/errors.ts";

function thrown(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

Deno.test("what the system says is a reason in plain words, without its number, call and path", async () => {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/file`;
  await Deno.writeTextFile(file, "");
  try {
    const cases: [act: () => unknown, words: string][] = [
      [() => Deno.readTextFileSync(folder), "it is a folder"],
      [() => Deno.writeTextFileSync(folder, ""), "it is a folder"],
      [() => Deno.readTextFileSync(`${folder}/none`), "no such file or folder"],
      [() => Deno.statSync(`${file}/below`), "a part of the path is a file, not a folder"],
      [() => Deno.mkdirSync(folder), "there is such a file"],
      [() => Deno.openSync(file, { createNew: true, write: true }), "there is such a file"],
      [() => Deno.statSync("n".repeat(5000)), "the name is too long"],
    ];
    if (Deno.build.os === "linux") {
      cases.push([() => Deno.writeTextFileSync("/dev/full", "x"), "no space left"]);
    }
    for (const [act, words] of cases) equal(reason(thrown(act)), words);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("what the system says through a module of Node is put in the same words", async () => {
  const first = createServer().listen(0, "127.0.0.1");
  await once(first, "listening");
  const { port } = first.address() as AddressInfo;
  const [taken] = await once(createServer().listen(port, "127.0.0.1"), "error");
  equal(reason(taken), "the address is in use");
  const message = "getaddrinfo ENOTFOUND no.such";
  equal(
    reason(Object.assign(new Error(message), { code: "ENOTFOUND" })),
    "there is no such address",
  );
  first.close();
  await once(first, "close");
});

Deno.test("a code that has no words of its own keeps the system's, in lower case", () => {
  const error = new Error("Owner died (os error 130): readfile '/x'");
  equal(reason(error), "owner died");
  equal(reason(Object.assign(error, { code: "EACCES" })), "permission denied");
});

Deno.test("a reason that is a whole message of its own does not begin a second sentence", () => {
  const inner = new UsageError('Cannot read "b.json": it is not JSON');
  const outer = new UsageError(`Cannot use "a": ${reason(inner)}`);
  equal(outer.message, 'Cannot use "a": cannot read "b.json": it is not JSON');
  ok(!/Cannot .*Cannot /.test(outer.message));
});

Deno.test("a reason is one line, though the parser of JSON quotes several", () => {
  const error = thrown(() => JSON.parse("a:\n\n  b\r\n"));
  ok(String(error).includes("\n"));
  equal(reason(error), `Unexpected token 'a', "a: b " is not valid JSON`);
});

Deno.test("other messages and other things that are thrown stay as they are", () => {
  equal(reason(new Error("odd: thing (of 5)")), "odd: thing (of 5)");
  equal(reason("text"), "text");
  equal(reason(undefined), "undefined");
});
