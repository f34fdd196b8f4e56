import assert from "node:assert/strict";
import { textOf } from "../../kernels/texts.ts";
import { MAX_VOCAB } from "../../src/model/config/decoder_config.ts";
import { writeTextsModule } from "../../tools/embedded_module.ts";

const FOLDER = new URL("../../kernels/", import.meta.url);

/** Paths of the WGSL files, as `//#import` lines name them. */
async function paths(folder = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, FOLDER))) {
    if (isDirectory) found.push(...await paths(`${folder}${name}/`));
    else if (name.endsWith(".wgsl")) found.push(`${folder}${name.slice(0, -".wgsl".length)}`);
  }
  return found.toSorted();
}

const files = new Map((await paths()).map((path) => [path, textOf(path) ?? ""]));

/** Directives of a file: line, indent, word and what follows. */
function directives(text: string): { line: number; indent: string; word: string; rest: string }[] {
  return text.split("\n").flatMap((line, i) => {
    const [, indent = "", word, rest = ""] = /^(\s*)\/\/#(\w*)\s*(.*)$/.exec(line) ?? [];
    return word === undefined ? [] : [{ line: i + 1, indent, word, rest }];
  });
}

Deno.test("what a bundle has in the place of the folder gives the same texts", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-texts-test-" });
  try {
    const path = await writeTextsModule(FOLDER, folder);
    const bundled = await import(`file://${path}`) as { textOf: typeof textOf };
    for (const [path, text] of files) {
      assert.equal(text, await Deno.readTextFile(new URL(`${path}.wgsl`, FOLDER)), path);
      assert.equal(bundled.textOf(path), text, path);
    }
    assert.deepEqual([bundled.textOf("toString"), textOf("none")], [undefined, undefined]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("every directive of the WGSL files is one of the three, and every import names a file", () => {
  for (const [path, text] of files) {
    for (const { line, word, rest } of directives(text)) {
      const place = `${path}.wgsl:${line}`;
      assert.match(word, /^(import|if|else|endif|for|endfor)$/, place);
      if (word !== "import") continue;
      const name = new RegExp(`^${rest.replaceAll(/\$\w+/g, "\\w+")}$`);
      assert.ok([...files.keys()].some((file) => name.test(file)), `${place}: ${rest}`);
    }
  }
});

Deno.test("every WGSL file is a kernel, or is imported by another one and in kernels/lib", () => {
  const imported = [...files.values()].flatMap(directives)
    .filter(({ word }) => word === "import")
    .map(({ rest }) => new RegExp(`^${rest.replaceAll(/\$\w+/g, "\\w+")}$`));
  for (const [path, text] of files) {
    const used = imported.some((name) => name.test(path));
    assert.notEqual(text.includes("@compute"), used, path);
    assert.ok(!used || path.startsWith("lib/"), path);
  }
});

Deno.test("each block of a WGSL file closes the brackets that it opens", () => {
  for (const [path, text] of files) {
    const depths: number[] = [];
    let depth = 0;
    for (const [i, line] of text.split("\n").entries()) {
      const word = /^\s*\/\/#(\w+)/.exec(line)?.[1] ?? "";
      const code = line.replace(/\/\/.*$/, "");
      for (const letter of code) depth += /[([{]/.test(letter) ? 1 : /[)\]}]/.test(letter) ? -1 : 0;
      if (word === "if" || word === "for") depths.push(depth);
      if (!/^(else|endif|endfor)$/.test(word)) continue;
      assert.equal(depth, depths.at(-1), `${path}.wgsl:${i + 1}`);
      if (word !== "else") depths.pop();
    }
    assert.deepEqual({ depth, depths }, { depth: 0, depths: [] }, path);
  }
});

/**
 * Files in which invocations store components of a vector that others store components of: they run on Vulkan alone
 * (`Tuning.componentStores` and, those of lib, `Tuning.handoffs`).
 */
const COMPONENT_STORES = [
  "attention/attention_row",
  "experts/router_logits",
  "lib/prologue_handoff",
  "lib/prologue_normed",
];

/** The indices behind a name, `a` and `b` of `[a][b] = x`, and what follows them. */
function indicesOf(text: string): { readonly indices: string[]; readonly rest: string } {
  const indices: string[] = [];
  let [from, depth] = [0, 0];
  for (const [i, letter] of [...text].entries()) {
    if (letter === "[" && depth++ === 0) from = i + 1;
    else if (letter === "]" && --depth === 0) indices.push(text.slice(from, i));
    else if (depth === 0) return { indices, rest: text.slice(i) };
  }
  return { indices, rest: "" };
}

// A store to a component may read the whole vector, change it and write it back (WGSL, "Memory Accesses"): of two
// invocations that store components of one vector, one may lose what the other stored. Components with constant numbers
// are stored by one invocation, one after the other.
Deno.test("no invocation stores a component of a vector of shared memory that its number decides", () => {
  const found = new Set<string>();
  for (const [path, text] of files) {
    const vectors = [
      ...text.matchAll(/var<(?:workgroup|storage[^>]*)> (\w+): ((?:array<)*)vec\d</g),
    ];
    const depths = new Map(
      vectors.map(([, name = "", arrays = ""]) => [name, arrays.split("<").length - 1]),
    );
    for (const line of text.split("\n")) {
      const [, name = "", behind = ""] = /^\s*(\w+)(\[.*)$/.exec(line) ?? [];
      const depth = depths.get(name);
      const { indices, rest } = indicesOf(behind);
      if (depth === undefined || indices.length <= depth || !/^ ([-+*|&^])?= /.test(rest)) continue;
      if (!/^(\$\w+|\d+)u?$/.test(indices.at(-1) ?? "")) found.add(path);
    }
  }
  assert.deepEqual([...found].toSorted(), COMPONENT_STORES);
});

Deno.test("what is drawn besides tokens has keys that no token has, each its own", () => {
  const keys = [...files.values()].flatMap((text) =>
    [...text.matchAll(/^const \w+ = (\w+)u; \/\/ in the place of a token id/gm)]
      .map(([, value]) => Number(value))
  );
  assert.equal(new Set(keys).size, 4, "relax, reject, round_slots, accept_commit");
  assert.ok(keys.length === 4 && keys.every((key) => key >= MAX_VOCAB), String(keys));
});
