import assert from "node:assert/strict";
import { runConvert } from "../../src/cli/checkpoint/convert.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import type { ConvertOptions } from "../../src/model/checkpoint/convert.ts";
import { fakeIo } from "./fake.ts";

const WRITTEN = { tensors: 3, bytes: 35_000, files: ["model.safetensors", "config.json"] };

async function run(
  args: string[],
  io = fakeIo(),
): Promise<{ code: number; asked: ConvertOptions }> {
  const invocation = parseArguments(["convert", ...args]);
  assert.ok(invocation.command === "convert");
  let asked: ConvertOptions | undefined;
  const convert = (options: ConvertOptions) => {
    asked = options;
    return Promise.resolve(options.signal?.aborted ? undefined : WRITTEN);
  };
  const code = await runConvert(invocation, { convert, io });
  return { code, asked: asked as ConvertOptions };
}

Deno.test("convert: what is asked of the model, and what is told", async () => {
  const io = fakeIo();
  const { code, asked } = await run(["--max-shard-size", "2", "./in", "./out"], io);
  const { from, to, force, shardBytes } = asked;
  assert.deepEqual([code, from, to, force, shardBytes], [0, "./in", "./out", false, 2e9]);
  assert.equal(io.out(), "./out: 3 tensors, 35.0 kB\n  model.safetensors\n  config.json\n");
});

Deno.test("convert --json, --force", async () => {
  const io = fakeIo();
  const { asked } = await run(["in", "out", "--json", "--force"], io);
  assert.equal(asked.force, true);
  assert.deepEqual(JSON.parse(io.out()), { to: "out", ...WRITTEN });
});

Deno.test("convert: Ctrl+C is 130 and prints nothing", async () => {
  const io = fakeIo();
  io.interrupt();
  assert.equal((await run(["in", "out"], io)).code, 130);
  assert.equal(io.out(), "");
});

for (
  const [args, message] of [
    [[], /Cannot run "convert": IN is missing; checkpoint folder or org\/name/],
    [["in"], /Cannot run "convert": OUT is missing; folder to create/],
    [["in", "out", "more"], /too many arguments, allowed is IN and OUT/],
    [["in", "out", "--max-shard-size", "0"], /allowed is a number above 0/],
  ] as const
) {
  Deno.test(`convert ${args.join(" ")}: a mistake is named`, () => {
    assert.throws(() => parseArguments(["convert", ...args]), message);
  });
}
