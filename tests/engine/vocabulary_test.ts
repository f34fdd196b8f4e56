import assert from "node:assert/strict";
import { type Machine, openEngine } from "./open.ts";
import { UsageError } from "../../src/errors.ts";
import { openGpu } from "../gpu/shared.ts";

const TARGET = new URL("../../models/fledgling/target/", import.meta.url);

interface TokenizerJson {
  readonly added_tokens: object[];
  readonly model: { readonly vocab: Record<string, number> };
}

/** The embedded model as a folder with another tokenizer.json. */
async function withTokenizer(
  change: (json: TokenizerJson) => void,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    for await (const { name } of Deno.readDir(TARGET)) {
      await Deno.copyFile(new URL(name, TARGET), `${folder}/${name}`);
    }
    const path = `${folder}/tokenizer.json`;
    const json = JSON.parse(await Deno.readTextFile(path));
    change(json);
    await Deno.writeTextFile(path, JSON.stringify(json));
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a vocabulary with a token that the model has not is refused before a device opens", () =>
  withTokenizer((json) => void (json.model.vocab["beyond"] = 2048), async (model) => {
    let opened = false;
    const machine: Machine = {
      openGpu(adapter) {
        opened = true;
        return openGpu(adapter);
      },
      gpuMemory: () => Promise.resolve(undefined),
    };
    const why = `token "beyond" has id 2048, the model's vocab_size is 2048`;
    await assert.rejects(
      openEngine({ model: { model, draft: "none" } }, machine),
      new UsageError(`Cannot load the tokenizer of "${model}": ${why}`),
    );
    assert.ok(!opened);
  }));

Deno.test("an added token that the model has not is plain text, with a warning", () =>
  withTokenizer(
    (json) => void json.added_tokens.push({ id: 2048, content: "<pad>", special: true }),
    async (model) => {
      const warnings: string[] = [];
      using engine = await openEngine({
        model: { model, draft: "none" },
        hooks: { onWarning: (line) => warnings.push(line) },
      });
      assert.deepEqual(warnings, [
        `the tokenizer of "${model}" has token "<pad>" with id 2048, which the model has not ` +
        "(vocab_size 2048); it is read as plain text",
      ]);
      const ids = engine.text.encodePrompt({ raw: "a<pad>b" });
      assert.ok(ids.every((id) => id < 2048));
      assert.equal(engine.text.tokenizer.decode(ids), "a<pad>b");
    },
  ));
