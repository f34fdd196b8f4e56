import { deepEqual, equal, ok } from "node:assert/strict";
import drafts from "../../presets/drafts.json" with { type: "json" };
import listed from "../../presets/models.json" with { type: "json" };
import { assertGolden } from "../golden_text.ts";
import { knownMarkdown, knownModels, runKnownModels } from "../../src/cli/hub/known.ts";

const KNOWN = knownModels();
const ROOT = new URL("../../", import.meta.url);
const BLOCK = /(<!-- models -->\n\n)[^]*?(\n\n<!-- \/models -->)/;

function printed(machine: { adapter: boolean; bytes: number | undefined }, json = false): string {
  let text = "";
  runKnownModels({ json }, { machine, known: KNOWN, out: (more) => text += more });
  return text;
}

Deno.test("known models: the shapes have as many parameters as the hub counts", () => {
  deepEqual(
    KNOWN.map(({ name, parameters }) => ({ name, parameters })),
    listed.map(({ name, parameters }) => ({ name, parameters })),
  );
});

Deno.test("known models: what they take", () => {
  const known = new Map(KNOWN.map((model) => [model.name, model]));
  equal(known.size, listed.length);
  for (const { name, parameters, downloadBytes, memory, draft } of known.values()) {
    ok(downloadBytes >= 2 * parameters, name);
    ok(memory.bf16 > 2 * parameters && memory.bf16 > memory.q8 && memory.q8 > memory.q4, name);
    equal(draft, drafts.find(({ target }) => target === name)?.draft);
  }
  // The files of these: 2 bytes a parameter; the first holds its lm_head once more.
  equal(known.get("Qwen/Qwen3-0.6B")?.downloadBytes, 2 * 751_632_384);
  equal(known.get("Qwen/Qwen3-4B")?.downloadBytes, 2 * 4_022_468_096);
  // Rows of one tensor: q, k and v, gate and up.
  equal(known.get("microsoft/Phi-3.5-mini-instruct")?.downloadBytes, 2 * 3_821_079_552);
});

Deno.test("known models: which of them fit here", () => {
  const cell = (text: string, name: string) =>
    text.split("\n").find((line) => line.startsWith(`${name} `))?.split(/ {2,}/)[5];
  const small = printed({ adapter: true, bytes: 12e9 });
  equal(cell(small, "Qwen/Qwen3-4B"), "yes");
  equal(cell(small, "Qwen/Qwen3-8B"), "--quantize q4");
  equal(cell(small, "meta-llama/Llama-3.3-70B-Instruct"), "no");
  equal(cell(printed({ adapter: true, bytes: undefined }), "Qwen/Qwen3-4B"), "unknown");
  equal(cell(printed({ adapter: false, bytes: undefined }), "Qwen/Qwen3-4B"), "no adapter");

  const { machine_bytes, models } = JSON.parse(printed({ adapter: true, bytes: 12e9 }, true));
  equal(machine_bytes, 12e9);
  const fits = Object.fromEntries(models.map((each: Record<string, string>) => [
    each["name"],
    each["fits"],
  ]));
  deepEqual([fits["Qwen/Qwen3-4B"], fits["Qwen/Qwen3-8B"]], ["bf16", "q4"]);
  equal(JSON.parse(printed({ adapter: true, bytes: undefined }, true)).models[0].fits, null);
});

Deno.test("README.md has the table of models as it is computed", async () => {
  const path = new URL("README.md", ROOT);
  const text = await Deno.readTextFile(path);
  const wanted = text.replace(BLOCK, (_, begin, end) => `${begin}${knownMarkdown(KNOWN)}${end}`);
  ok(BLOCK.test(text), "it has the marks");
  await assertGolden(path, wanted, import.meta);
});
