import assert from "node:assert/strict";
import { openModels } from "../../src/engine/load/load.ts";
import {
  embeddedHead,
  safetensorsFiles,
  type Stored,
  type Tensors,
} from "../model/draft_formats.ts";

const eagle3 = embeddedHead("eagle3");
const embedTokens = embeddedHead("target").tensors["model.embed_tokens.weight"] as Stored;
const { "lm_head.weight": ownHead, d2t: _, ...layer } = eagle3.tensors;

/** The tensor with another last byte. */
function changed({ bytes, ...tensor }: Stored): Stored {
  const copy = bytes.slice();
  copy[copy.length - 1]! ^= 1;
  return { ...tensor, bytes: copy };
}

/** Whether a draft with these tensors takes memory for an embedding and a head of its own. */
async function owns(
  tensors: Tensors,
  config: Record<string, unknown> = {},
): Promise<{ readonly embedding: boolean; readonly head: boolean }> {
  const draft = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const files = safetensorsFiles({ config: { ...eagle3.config, ...config }, tensors });
    for (const [file, bytes] of Object.entries(files)) {
      await Deno.writeFile(`${draft}/${file}`, bytes);
    }
    using models = openModels({ draft });
    assert.deepEqual(models.warnings, []);
    const found = models.draft?.config;
    assert.ok(found && found.algorithm !== "STANDALONE");
    return { embedding: found.ownEmbedding, head: found.ownHead };
  } finally {
    await Deno.remove(draft, { recursive: true });
  }
}

Deno.test("an embedding that the draft's files repeat from the target's is not loaded again", async () => {
  const name = "embed_tokens.weight";
  assert.deepEqual(await owns(eagle3.tensors), { embedding: false, head: true });
  assert.deepEqual(await owns({ ...eagle3.tensors, [name]: embedTokens }), {
    embedding: false,
    head: true,
  });
  assert.deepEqual(await owns({ ...eagle3.tensors, [name]: changed(embedTokens) }), {
    embedding: true,
    head: true,
  });
});

Deno.test("a head over the whole vocabulary that is the target's is not loaded again", async () => {
  assert.ok(ownHead);
  const whole = { draft_vocab_size: embedTokens.shape[0] };
  // The target's head is its embedding.
  const same = { ...layer, "lm_head.weight": embedTokens };
  const other = { ...layer, "lm_head.weight": changed(embedTokens) };
  assert.deepEqual(await owns(same, whole), { embedding: false, head: false });
  assert.deepEqual(await owns(other, whole), { embedding: false, head: true });
});
