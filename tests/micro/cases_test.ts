import assert from "node:assert/strict";
import { adjustCases } from "../../lab/cases/adjust.ts";
import { attentionCases } from "../../lab/cases/attention.ts";
import { matmulCases } from "../../lab/cases/matmul.ts";
import { recurrentCases } from "../../lab/cases/recurrent.ts";
import { rowCases } from "../../lab/cases/rows.ts";
import { openCase } from "../../lab/measure.ts";
import { parse } from "../../lab/micro.ts";
import { UsageError } from "../../src/errors.ts";
import { openDevice } from "../gpu/device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const casesFor = (software: boolean) => [
  ...matmulCases(software),
  ...attentionCases(software),
  ...rowCases(software),
  ...recurrentCases(software),
  ...adjustCases(),
];

Deno.test("no two cases share a name; Llama-8B's have its widths on hardware", () => {
  for (const software of [false, true]) {
    const names = casesFor(software).map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
  }
  const names = new Set(casesFor(false).map(({ name }) => name));
  for (const rows of [1, 2, 3, 4, 5, 6, 8, 12, 16]) {
    assert.ok(names.has(`matmul/llama-8b/down/${rows}`));
  }
  assert.ok(names.has("attention/llama-8b/8192/8") && names.has("choose/greedy/128256/1"));
});

const MEASURED = [
  // weights bf16; x, and out which is added to
  ["matmul/fledgling/down/4", 2 * 256 * 704 + 4 * 4 * (704 + 2 * 256), 2 * 4 * 256 * 704],
  // keys and values; q and out
  ["attention/fledgling/512/4", 2 * 4 * (512 * 4 * 32 + 4 * 8 * 32), 4 * 4 * 8 * 32 * 512],
  ["choose/greedy/128256/1", 4 * 128_256, 128_256],
  // the state twice; q, k, v and the output
  ["delta_rule/qwen35-9b-eighth/8", 8 * 4 * 128 * 128 + 4 * 8 * 1536, 7 * 8 * 4 * 128 * 128],
  ["adjust/penalties/128256/8", 8 * 8 * 128_256, 8 * 128_256],
  ["logprobs/5/128256/1", 0, 0],
] as const;

for (const [name, bytes, flops] of MEASURED) {
  Deno.test(`${name} is measured, with its bytes and flops`, async () => {
    const one = casesFor(true).find((one) => one.name === name);
    assert.ok(one);
    using open = await openCase(device.gpu, one);
    const measured = await open.measure();
    assert.ok(measured.us > 0);
    assert.deepEqual([measured.bytes, measured.flops], [bytes, flops]);
  });
}

Deno.test("without timestamps the wall clock is taken", async () => {
  const one = casesFor(true).find(({ name }) => name === "matmul/fledgling/qkv/1");
  assert.ok(one);
  const gpu = { ...device.gpu, info: { ...device.gpu.info, features: [] } };
  using open = await openCase(gpu, one);
  assert.ok((await open.measure()).us > 0);
});

Deno.test("arguments of bench:micro", () => {
  const alone = { against: undefined, blocks: 1, names: [], serve: false };
  assert.deepEqual(parse([]), alone);
  assert.deepEqual(parse(["down", "o/1"]), { ...alone, names: ["down", "o/1"] });
  const compared = { ...alone, against: "main", blocks: 9, names: ["down"] };
  assert.deepEqual(parse(["--against", "main", "down"]), compared);
  assert.deepEqual(parse(["--blocks=3", "--against=main", "down"]), { ...compared, blocks: 3 });
  assert.throws(
    () => parse(["--help"]),
    /Unknown option '--help'; usage: deno task bench:micro \[/,
  );
  for (const args of [["--blocks", "0"], ["--blocks", "x"], ["--wild"], ["--against"]]) {
    assert.throws(() => parse(args), UsageError);
  }
});
