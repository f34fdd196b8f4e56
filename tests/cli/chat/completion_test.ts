import assert from "node:assert/strict";
import { complete } from "../../../src/cli/chat/completion.ts";

const HOME = Deno.env.get("HOME") ?? "";
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  ".": ["chat.json", "chats/", "my chat.json", ".hidden"],
  "chats/": ["monday.json"],
  "/": ["tmp/"],
  [`${HOME}/`]: ["at home.json"],
};

function list(path: string) {
  return (FOLDERS[path] ?? []).map((name) => ({
    name: name.replace("/", ""),
    isFolder: name.endsWith("/"),
  }));
}

const COMPLETED: readonly (readonly [line: string, candidates: string[], end: string])[] = [
  ["/reg", ["/regen"], "/reg"],
  ["/s", ["/save ", "/set ", "/show", "/system "], "/s"],
  ["/nope", [], "/nope"],
  ["hello /s", [], "hello /s"],
  ["/set te", ["temperature "], "te"],
  ["/set top", ["top-k ", "top-p "], "top"],
  ["/set temperature 0", [], "/set temperature 0"],
  ["/set form", ["format "], "form"],
  ["/set format ch", ["chat.json", "chats/"], "ch"],
  ["/load ch", ["chat.json", "chats/"], "ch"],
  ["/load chats/m", ["monday.json"], "m"],
  ["/save my ch", ["my chat.json"], "my ch"],
  ["/load ", ["chat.json", "chats/", "my chat.json"], ""],
  ["/load .h", [".hidden"], ".h"],
  ["/load /t", ["tmp/"], "t"],
  ["/load ~", ["~/"], "~"],
  ["/load ~/at", ["at home.json"], "at"],
  ["/load no/such/", [], ""],
  ["/regen ", [], "/regen "],
];

for (const [line, candidates, end] of COMPLETED) {
  Deno.test(`completes: ${line}`, () => {
    assert.deepEqual(complete(line, list), [candidates, end]);
  });
}

Deno.test("completes: real folders and links to them", async () => {
  const dir = await Deno.makeTempDir();
  await Deno.mkdir(`${dir}/inner`);
  await Deno.symlink(`${dir}/inner`, `${dir}/linked`);
  await Deno.symlink(`${dir}/gone`, `${dir}/dangling`);
  assert.deepEqual(complete(`/load ${dir}/`), [["dangling", "inner/", "linked/"], ""]);
  assert.deepEqual(complete(`/load ${dir}/none/x`), [[], "x"]);
  await Deno.remove(dir, { recursive: true });
});
