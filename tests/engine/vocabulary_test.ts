import assert from "node:assert/strict";
import { type Machine, openEngine } from "../../src/engine/open.ts";
import { UsageError } from "../../src/errors.ts";
import { openGpu } from "../../src/gpu/device.ts";

const TARGET = new URL("../../models/fledgling/target/", import.meta.url);
const PAD = { id: 2048, content: "<pad>", special: true };

/** The embedded model as a folder, with a further token in tokenizer.json. */
async function withPad(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    for await (const { name } of Deno.readDir(TARGET)) {
      await Deno.copyFile(new URL(name, TARGET), `${folder}/${name}`);
    }
    const path = `${folder}/tokenizer.json`;
    const json = JSON.parse(await Deno.readTextFile(path));
    json.added_tokens.push(PAD);
    await Deno.writeTextFile(path, JSON.stringify(json));
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a tokenizer with a token that the model has not is refused before a device opens", () =>
  withPad(async (model) => {
    let opened = false;
    const machine: Machine = {
      openGpu(adapter) {
        opened = true;
        return openGpu(adapter);
      },
      gpuMemory: () => Promise.resolve(undefined),
    };
    const why = `token "<pad>" has id 2048, the model's vocab_size is 2048`;
    await assert.rejects(
      openEngine({ model, draft: "none" }, machine),
      new UsageError(`Cannot load the tokenizer of "${model}": ${why}`),
    );
    assert.ok(!opened);
  }));
