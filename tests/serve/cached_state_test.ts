/** A chat of a model with recurrent states, over HTTP and through its template: the next turn stores what is new. */
import assert from "node:assert/strict";
import { fileOf, tensorsOf } from "../model/safetensors_bytes.ts";
import { serve } from "./server.ts";

const path = (name: string) => new URL(name, import.meta.url).pathname;
const GOLDEN = path("../golden/qwen3_5");
const FLEDGLING = path("../../models/fledgling/target");
const VOCAB = 2048;
const PAGE = 16;

/** The golden with the embedded model's tokenizer. Its 320 embeddings are repeated to fill the larger vocabulary. */
async function withTokenizer(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const config = JSON.parse(await Deno.readTextFile(`${GOLDEN}/config.json`));
  const changed = { ...config, vocab_size: VOCAB, eos_token_id: 1, max_position_embeddings: 1024 };
  await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(changed));
  const tensors = [...tensorsOf(`${GOLDEN}/model.safetensors`)].map(([name, tensor]) => {
    const [rows = 0, ...others] = tensor.shape;
    if (rows !== config.vocab_size) return [name, tensor] as const;
    const row = tensor.bytes.length / rows;
    const bytes = new Uint8Array(VOCAB * row).map((_, i) =>
      tensor.bytes[i % tensor.bytes.length] ?? 0
    );
    return [name, { ...tensor, shape: [VOCAB, ...others], bytes }] as const;
  });
  await Deno.writeFile(`${folder}/model.safetensors`, fileOf(new Map(tensors)));
  for (const file of ["tokenizer.json", "tokenizer_config.json"]) {
    await Deno.copyFile(`${FLEDGLING}/${file}`, `${folder}/${file}`);
  }
  await Deno.copyFile(path("../golden/templates/qwen38.jinja"), `${folder}/chat_template.jinja`);
  return folder;
}

Deno.test("qwen3.5: the second turn of a chat stores its new tokens only (usage.cached_tokens)", async () => {
  const folder = await withTokenizer();
  try {
    await using server = await serve({ maxBatch: 2 }, {
      model: { model: folder, draft: "none" },
      limits: { contextLength: 1024 },
    });
    const messages = [
      { role: "system", content: "Answer in one short line, in plain English. ".repeat(6) },
      { role: "user", content: "Tell me of a fox and of what it found under a tree one morning." },
    ];
    const ask = (all: readonly unknown[]) =>
      server.json("/v1/chat/completions", {
        messages: all,
        max_tokens: 4,
        chat_template_kwargs: { enable_thinking: false },
      });
    const { usage: first, choices: [{ message }] } = await ask(messages);
    assert.equal(first.prompt_tokens_details?.cached_tokens ?? 0, 0);
    const { usage: second } = await ask([
      ...messages,
      { role: "assistant", content: message.content },
      { role: "user", content: "And then?" },
    ]);
    const cached = second.prompt_tokens_details.cached_tokens;
    // A state is kept only at whole pages, and a few rows before the end of the text that surely stays the same.
    assert.ok(cached >= first.prompt_tokens - 2 * PAGE, `${cached} of ${first.prompt_tokens}`);
    assert.ok(cached < second.prompt_tokens);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
