import assert from "node:assert/strict";
import {
  modelText,
  namedRepo,
  parseFilePlace,
  parseModelName,
  parsePlace,
} from "../../src/hub/names.ts";

const nowhere = () => false;

Deno.test("names of the hub", () => {
  const commit = "0123456789abcdef0123456789abcdef01234567";
  const cases: [string, string, string][] = [
    ["Qwen/Qwen3-4B", "Qwen/Qwen3-4B", "main"],
    ["hf://Qwen/Qwen3-4B", "Qwen/Qwen3-4B", "main"],
    ["hf://Qwen/Qwen3-4B@v1.0", "Qwen/Qwen3-4B", "v1.0"],
    ["01-ai/Yi_1.5@refs/pr/12", "01-ai/Yi_1.5", "refs/pr/12"],
    [`a/b@${commit}`, "a/b", commit],
    ["gpt2", "gpt2", "main"],
  ];
  for (const [text, repo, revision] of cases) {
    assert.deepEqual(parseModelName(text), { repo, revision }, text);
  }
  assert.equal(modelText(parseModelName("hf://a/b")), "a/b");
  assert.equal(modelText(parseModelName("a/b@v1")), "a/b@v1");
  assert.equal(modelText(parseModelName(`a/b@${commit}`)), "a/b@0123456");
});

Deno.test("what is no name, and would leave the cache", () => {
  const texts = [
    ..."a/b/c ../b a/.. a/b@ a/b@../x a/b@x/../../y a//b /a/b ./a -a/b a-/b a/b--c a/b..c".split(
      " ",
    ),
    ..."a/b@x//y a/b@/x hf:// hf://a/b/c @v1 a\\b/c a/b@x\\y".split(" "),
    "",
    "a b/c",
    "a/b\n",
    `a/${"b".repeat(97)}`,
  ];
  for (const text of texts) {
    assert.throws(() => parseModelName(text), {
      name: "UsageError",
      message:
        `Cannot use "${text}": not the name of a model; allowed is org/name or org/name@revision`,
    });
  }
});

Deno.test("a folder, where one is there or it can be nothing else", () => {
  const folders = ["./a/b", "../a", "/a/b", "a", "a/b/c", "~/a/b", "a/b/", "C:\\a\\b", "a b/c"];
  for (const path of folders) {
    assert.deepEqual(parsePlace(path, nowhere), { kind: "folder", path });
  }
  const name = { repo: "a/b", revision: "main" };
  assert.deepEqual(parsePlace("a/b", nowhere), { kind: "hub", name });
  assert.deepEqual(parsePlace("a/b", () => true), { kind: "folder", path: "a/b" });
  assert.deepEqual(parsePlace("hf://a/b", () => true), { kind: "hub", name });
  assert.throws(() => parsePlace("hf://a b", nowhere), { name: "UsageError" });
});

Deno.test("what a card or a file names as a model", () => {
  for (const text of ["org/name", "https://huggingface.co/org/name", "https://hf.co/org/name/"]) {
    assert.equal(namedRepo(text), "org/name");
  }
  for (const text of [undefined, 7, "", "name", "a/b/c", "hf://a", "https://x.org/a/b", "../x"]) {
    assert.equal(namedRepo(text), undefined, String(text));
  }
});

Deno.test("a file: what is there or a path, else org/name/FILE", () => {
  const place = (text: string, there = false) => parseFilePlace(text, () => there);
  const repo = { repo: "thunlp/LLaMA3-FR-Spec", revision: "main" };
  assert.deepEqual(place("thunlp/LLaMA3-FR-Spec/freq_32768.pt"), {
    name: repo,
    path: "freq_32768.pt",
  });
  assert.deepEqual(place("hf://thunlp/LLaMA3-FR-Spec/maps/a.pt", true), {
    name: repo,
    path: "maps/a.pt",
  });
  assert.equal(place("a/b@v1/c.pt")?.name.revision, "v1");
  assert.equal(place("a/b/c.pt", true), undefined);
  for (const path of ["c.pt", "./a/c.pt", "/a/b/c.pt", "a/c.pt"]) {
    assert.equal(place(path), undefined, path);
  }
});
