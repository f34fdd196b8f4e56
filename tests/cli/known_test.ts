import { deepEqual, equal, ok } from "node:assert/strict";
import drafts from "../../presets/drafts.json" with { type: "json" };
import sizes from "../../presets/model_sizes.json" with { type: "json" };
import listed from "../../presets/models.json" with { type: "json" };
import { modelSizes } from "../../tools/model_sizes.ts";
import { drawnFrom, exhaustive } from "../exhaustive.ts";
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

const DRAWN = [drawnFrom(listed.map(({ name }) => name)), "Qwen/Qwen3-0.6B"];

// Models with thousands of expert tensors take seconds, so only a few models are tested by default.
for (const { name, ...model } of listed) {
  const { test } = DRAWN.includes(name) ? Deno : exhaustive;
  test(`${name}: presets/model_sizes.json has what tools/model_sizes.ts computes`, () => {
    const computed = modelSizes({ name, ...model });
    deepEqual(KNOWN.find((known) => known.name === name)?.sizes, computed);
    // Compared only if the hub's count is known.
    if ("parameters" in model) equal(computed.parameters, model.parameters);
  });
}

Deno.test("known models: what they take", () => {
  const known = new Map(KNOWN.map((model) => [model.name, model]));
  equal(known.size, listed.length);
  deepEqual(Object.keys(sizes), listed.map(({ name }) => name));
  for (const { name, sizes: { parameters, download, bf16, q8, q4 }, draft } of known.values()) {
    // Experts of gpt-oss are published in 4.25 bits.
    ok(download >= (name.includes("gpt-oss") ? 0.5 : 2) * parameters, name);
    ok(bf16 > q8 && q8 > q4, name);
    equal(draft, drafts.find(({ target }) => target === name)?.draft);
  }
  // These files have 2 bytes a parameter. The first also holds its tied lm_head.
  equal(known.get("Qwen/Qwen3-0.6B")?.sizes.download, 2 * 751_632_384);
  equal(known.get("Qwen/Qwen3-4B")?.sizes.download, 2 * 4_022_468_096);
  // q, k and v are rows of one tensor, and so are gate and up.
  equal(known.get("microsoft/Phi-3.5-mini-instruct")?.sizes.download, 2 * 3_821_079_552);
  // 12.8 GiB, as published.
  equal(
    Math.round((known.get("openai/gpt-oss-20b")?.sizes.download ?? 0) / 2 ** 30 * 10) / 10,
    12.8,
  );
});

Deno.test("known models: current ones first, each part by parameters", () => {
  const parts = Object.groupBy(KNOWN, ({ earlier = false }) => earlier ? "earlier" : "current");
  const { current = [], earlier = [] } = parts;
  deepEqual([...current, ...earlier], KNOWN);
  for (const part of [current, earlier]) {
    const counts = part.map(({ sizes }) => Math.round(sizes.parameters / 1e9));
    deepEqual(counts, counts.toSorted((a, b) => a - b));
  }
  const text = printed({ adapter: true, bytes: 24e9 });
  const line = (name: string) => text.split("\n").find((each) => each.startsWith(`${name} `));
  ok(line("Qwen/Qwen3.5-9B")?.endsWith("from the text, or --drafter NEXTN"), text);
  ok(line("openai/gpt-oss-20b")?.endsWith("RedHatAI/gpt-oss-20b-speculator.eagle3"), text);
  const card = text.split("\n").find((each) => each.startsWith("24 GB"));
  deepEqual(card?.split(/ {2,}/), [
    "24 GB",
    "openai/gpt-oss-20b",
    "Qwen/Qwen3.5-9B",
    "Qwen/Qwen3.6-35B-A3B",
  ]);
});

Deno.test("known models: a terminal's lines fit, with the columns that do", () => {
  for (const columns of [80, 100]) {
    let text = "";
    const machine = { adapter: true, bytes: 24e9 };
    runKnownModels({ json: false }, { machine, known: KNOWN, columns, out: (all) => text = all });
    const lines = text.split("\n");
    ok(lines.every((line) => line.length <= columns), text);
    ok(/^NAME +DOWNLOAD +BF16 .*FITS$/.test(lines[0] ?? ""), lines[0]);
    const explained = lines.find((line) => line.includes("GPU memory"))?.split(":")[0];
    equal(explained, /BF16.*(?= +FITS)/.exec(lines[0] ?? "")?.[0].trim().replaceAll(/ +/g, ", "));
    ok(lines.includes("A wider terminal, or --json, shows more columns."));
  }
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
