// generate --prediction: the embedded model's own text, in fewer rounds.
import assert from "node:assert/strict";
import { main } from "../../main.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";
import { fakeIo } from "./fake.ts";

const DRAFTED = ["--num-steps", "3"];
const PROMPT = "Count from 3 to 20.";

async function generated(...flags: readonly string[]) {
  const io = fakeIo({ stdin: "" });
  const always = ["--json", "--temperature", "0", "-n", "40", "--quiet"];
  const code = await main(["generate", ...always, ...flags, PROMPT], io);
  assert.equal(code, 0, io.err());
  return JSON.parse(io.out());
}

Deno.test("--prediction: the same text in fewer rounds, and what came of it is told", async () => {
  const file = await Deno.makeTempFile();
  try {
    const plain = await generated("--draft", "none");
    assert.equal(plain.prediction, undefined);
    await Deno.writeTextFile(file, plain.text);
    for (const flags of EXHAUSTIVE ? [["--draft", "none"], DRAFTED] : [DRAFTED]) {
      const { text, prediction, speculative, run } = await generated(
        ...flags,
        "--prediction",
        file,
      );
      assert.equal(text, plain.text);
      assert.ok(prediction.accepted > 20 && prediction.drafted >= prediction.accepted);
      assert.ok(speculative.rounds < plain.speculative.rounds / 3);
      assert.equal(run.flags.prediction, undefined, "it is no part of what is opened");
    }
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("--prediction that cannot be used: nothing is loaded", async () => {
  const refused = async (...flags: readonly string[]) => {
    const io = fakeIo({ stdin: "" });
    assert.equal(await main(["generate", ...flags], io), 2);
    assert.equal(io.out(), "");
    return io.err();
  };
  assert.match(await refused("--prediction", "/no/such", "x"), /Cannot open "\/no\/such"/);
  assert.match(await refused("--prediction", "-", "x"), /standard input is for the prompt/);
  const batch = ["--batch", "-", "--prediction", "/dev/null"];
  assert.match(await refused(...batch), /Cannot use "--prediction" with "--batch"/);
});
