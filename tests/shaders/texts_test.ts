import assert from "node:assert/strict";
import { TEXTS } from "../../shaders/texts.ts";

const FOLDER = new URL("../../shaders/", import.meta.url);

/** Paths of the WGSL files, as `//use` lines name them. */
async function paths(folder = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, FOLDER))) {
    if (isDirectory) found.push(...await paths(`${folder}${name}/`));
    else if (name.endsWith(".wgsl")) found.push(`${folder}${name.slice(0, -".wgsl".length)}`);
  }
  return found.toSorted();
}

Deno.test("the table of WGSL texts has every file of the folder under its own path", async () => {
  const files = await paths();
  assert.deepEqual(Object.keys(TEXTS).toSorted(), files);
  for (const path of files) {
    assert.equal(TEXTS[path], await Deno.readTextFile(new URL(`${path}.wgsl`, FOLDER)), path);
  }
});

Deno.test("every //use line names a file, or a slot that the file's comment describes", () => {
  for (const [path, text] of Object.entries(TEXTS)) {
    const comments = [...text.matchAll(/^\s*\/\/ (.*)$/gm)].map(([, comment = ""]) => comment);
    const describes = (slot: string) =>
      comments.some((line) => line.startsWith(`  ${slot}: `) || line.includes(`\`${slot}\``));
    for (const [, name = ""] of text.matchAll(/^\s*\/\/use (.*)$/gm)) {
      const known = name.includes("/") ? Object.hasOwn(TEXTS, name) : describes(name);
      assert.ok(known, `${path}.wgsl: //use ${name}`);
    }
  }
});
