import assert from "node:assert/strict";
import { runTokenMap } from "../../src/cli/checkpoint/token_map.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { openEmbedded } from "../../src/model/checkpoint/embedded.ts";
import { countTokens } from "../../src/model/checkpoint/frequent_tokens.ts";
import { readTokenMap } from "../../src/model/checkpoint/token_map.ts";
import { loadTokenizer } from "../../src/text/tokenizer.ts";
import { fakeIo } from "./fake.ts";

function run(...args: string[]) {
  const invocation = parseArguments(["token-map", ...args]);
  assert.ok(invocation.command === "token-map");
  const io = fakeIo({});
  return { code: runTokenMap(invocation.names, invocation.options, io), err: io.err() };
}

const encode = (() => {
  using checkpoint = openEmbedded("target");
  const json = checkpoint.json("tokenizer.json");
  return loadTokenizer("fledgling", json, checkpoint.json("tokenizer_config.json")).encode;
})();

Deno.test("token-map: what the corpus has most often, ends of texts among them", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const text = "a lantern and a fox and a lantern\n".repeat(5);
    await Deno.writeTextFile(`${folder}/a.txt`, text);
    const line = JSON.stringify({ messages: [{ role: "user", content: "a river" }] });
    await Deno.writeTextFile(`${folder}/b.jsonl`, `${line}\n\n${line}\n`);
    const corpus = [`${folder}/a.txt`, `${folder}/b.jsonl`, "--size", "20"];
    const seen = [text, "user", "a river", "user", "a river"]
      .flatMap((part) => encode(part, { addSpecialTokens: false }));
    const count = (id: number) => seen.filter((each) => each === id).length;
    const maps = ["map.json", "map.safetensors"].map((name) => {
      const { code, err } = run(...corpus, "--output", `${folder}/${name}`);
      assert.equal(code, 0);
      assert.match(err, /20 tokens, \d+(\.\d)?% of the corpus\n$/);
      return [...readTokenMap(`${folder}/${name}`, 2048)];
    });
    const [ids = []] = maps;
    assert.deepEqual(maps[1], ids);
    assert.equal(ids.length, 20);
    for (let i = 1; i < ids.length; i++) {
      assert.ok(count(ids[i - 1] as number) >= count(ids[i] as number));
    }
    assert.ok(ids.includes(1), "the end of a turn");
    const least = Math.min(...ids.map(count).filter((n) => n > 0));
    assert.ok([...new Set(seen)].every((id) => ids.includes(id) || count(id) <= least));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("token-map: what is missing or cannot be read or written is one line", () => {
  const fails = (message: RegExp, ...args: string[]) =>
    assert.throws(() => run(...args), { name: "UsageError", message });
  fails(/FILE is missing/);
  fails(/--output is missing/, "a.txt");
  fails(/allowed is \.json or \.safetensors/, "a.txt", "--output", "a.pt");
  fails(
    /^Cannot read "\/nowhere\.txt"/,
    "/nowhere.txt",
    "--output",
    "a.json",
    "--size",
    "20",
  );
  fails(
    /Cannot use "--size 32768": "fledgling\/target" has 2048 tokens; give a smaller --size$/,
    "a",
    "--output",
    "a.json",
  );
});

Deno.test("token-map: a file that is there stays without --force; a corpus without text is refused", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const map = `${folder}/map.json`;
    await Deno.writeTextFile(map, "[1]");
    await Deno.writeTextFile(`${folder}/a.txt`, "a fox");
    const args = ["--size", "4", "--output", map];
    // The file is looked at first: the corpus is not there.
    assert.throws(() => run(`${folder}/none.txt`, ...args), {
      name: "UsageError",
      message: /^Cannot write ".*map\.json": the file exists already; .*--force/,
    });
    await Deno.writeTextFile(`${folder}/empty.txt`, "");
    assert.throws(() => run(`${folder}/empty.txt`, ...args, "--force"), {
      name: "UsageError",
      message: /^Cannot count the tokens of ".*empty\.txt": there is no text$/,
    });
    assert.equal(await Deno.readTextFile(map), "[1]");
    assert.throws(() => run(`${folder}/a.txt`, map, ...args, "--force"), {
      name: "UsageError",
      message: /^Cannot write "(.*map\.json)": "\1", which is read, is the same file$/,
    });
    assert.equal(await Deno.readTextFile(map), "[1]");
    assert.equal(run(`${folder}/a.txt`, ...args, "--force").code, 0);
    assert.equal(JSON.parse(await Deno.readTextFile(map)).length, 4);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("token counts: ties go to the lower id, and what is always kept stays", () => {
  const counts = countTokens(6);
  counts.add([3, 3, 5, 1]);
  assert.deepEqual(counts.mostFrequent(3), [3, 1, 5]);
  assert.deepEqual(counts.mostFrequent(3, [4]), [3, 1, 4]);
  // More are always kept than are asked for: no other is.
  assert.deepEqual(counts.mostFrequent(1, [2, 4]), [2, 4]);
  assert.deepEqual(counts.mostFrequent(6), [3, 1, 5, 0, 2, 4]);
  assert.equal(counts.coverage([3]), 0.5);
});
