import assert from "node:assert/strict";
import { assertGolden } from "./golden_text.ts";

Deno.test("a text that is not its file's: which line, and the command that rewrites the file", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const file = new URL(`file://${folder}/help.txt`);
    const failure = async (text: string) => {
      const found = await assertGolden(file, text, import.meta).catch((error) => error);
      assert.ok(found instanceof assert.AssertionError);
      return found.message.replace(folder, "");
    };
    const command = "If the new text is meant: UPDATE_GOLDEN=1 deno task test " +
      "tests/golden_text_test.ts, then read git diff";
    assert.equal(await failure("a\n"), `/help.txt is not there\n${command}`);
    await Deno.writeTextFile(file, "a\nb\nc\n");
    await assertGolden(file, "a\nb\nc\n", import.meta);
    const differs = (line: number, before: string, after: string) =>
      `/help.txt differs from what is made, in line ${line}:\n- ${before}\n+ ${after}\n${command}`;
    assert.equal(await failure("a\nB\nc\n"), differs(2, "b", "B"));
    assert.equal(await failure("a\nb"), differs(3, "c", "(the end)"));
    assert.equal(await failure("a\nb\nc\nd\n"), differs(4, "", "d"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
