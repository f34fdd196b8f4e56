/** Whether a head is tied to the embedding, by the files. */
import assert from "node:assert/strict";
import { withHeadOfFile } from "../../src/model/checkpoint/head_of_file.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { checkTarget, targetTensors } from "../../src/model/weights/tensors.ts";
import { target, TARGET_JSON } from "./drafts.ts";
import { shapesOf, tensorFile, toyCheckpoint } from "./folders.ts";

type Change = Readonly<Record<string, unknown>>;

/** Config keys that give either tensor 1280 bytes, which repeat every 256: they are the same; or else 1216. */
const SAME = { vocab_size: 40 };
const DIFFERENT = { vocab_size: 38 };

/** Opens a target with a head in its file, which follows the embedding; without one if `head` is false. */
function opened(
  change: Change,
  { head = true, text = {} }: { head?: boolean; text?: Change } = {},
) {
  const { vocab_size = 40, ...own } = change;
  const shapes = shapesOf(targetTensors(target({ vocab_size })));
  const { "model.embed_tokens.weight": embed = [], "lm_head.weight": last = [], ...others } =
    shapes;
  const all = {
    "model.embed_tokens.weight": embed,
    ...head ? { "lm_head.weight": last } : {},
    ...others,
  };
  const plain = { ...TARGET_JSON, vocab_size };
  const wrapped = {
    architectures: ["Mistral3ForConditionalGeneration"],
    model_type: "mistral3",
    text_config: { ...plain, architectures: undefined, model_type: "mistral", ...text },
    ...own,
  };
  const json = "text" in own ? { ...wrapped, text: undefined } : { ...plain, ...own };
  using checkpoint = toyCheckpoint({ "config.json": json, "model.safetensors": tensorFile(all) });
  const config = parseModelConfig("toy", checkpoint.json("config.json"), undefined);
  return { tied: config.tied, warnings: checkTarget(checkpoint, config) };
}

const TIED = { tie_word_embeddings: true };
const WARNING =
  'toy: config.json says that the head is tied, but tensor "lm_head.weight" differs ' +
  'from "model.embed_tokens.weight", so it is not';

Deno.test("a head that differs from the embedding is used, whatever config.json says of it", () => {
  assert.deepEqual(opened({ ...TIED, ...DIFFERENT }), { tied: false, warnings: [WARNING] });
  assert.deepEqual(opened({ ...TIED, ...SAME }), { tied: true, warnings: [] });
  assert.deepEqual(opened(TIED, { head: false }), { tied: true, warnings: [] });
  for (const sizes of [SAME, DIFFERENT]) {
    const untied = { tie_word_embeddings: false };
    assert.deepEqual(opened({ ...untied, ...sizes }), { tied: false, warnings: [] });
    // Llama's head is not tied where config.json does not say it.
    assert.deepEqual(opened(sizes), { tied: false, warnings: [] });
  }
});

Deno.test("where a model with images does not say whether its head is tied, it is if there is none", () => {
  const wrapped = (change: Change, options: Parameters<typeof opened>[1]) =>
    opened({ text: true, ...change }, options).tied;
  const [said, unsaid] = [{ text: { tie_word_embeddings: false } }, {}];
  for (const text of [said, unsaid]) {
    assert.equal(wrapped({}, { ...text, head: false }), true);
    assert.equal(wrapped(DIFFERENT, text), false);
  }
  assert.equal(wrapped(DIFFERENT, { text: TIED }), false);
  assert.throws(
    () => wrapped({ tie_word_embeddings: false }, { text: TIED, head: false }),
    /lm_head.weight" is missing/,
  );
});

Deno.test("weights are compared in pieces, up to the first that differs", () => {
  const rows = 3 << 17; // of 16 numbers in bf16: three pieces of 4 MiB
  const size = rows * 32 + 4 * 32;
  const file = (name: string, dtypeName = "BF16") => ({
    name,
    dtype: "BF16" as const,
    dtypeName,
    shape: [rows + 4, 16],
    file: name,
    begin: 0,
    size,
  });
  const names = ["model.embed_tokens.weight", "lm_head.weight"] as const;
  /** Tied, and bytes read, if the head differs at a byte; -1: nowhere. */
  const compared = (differs: number, dtypeName?: string) => {
    let bytes = 0;
    const [embed, head] = [file(names[0]), file(names[1], dtypeName)];
    const checkpoint: Checkpoint = {
      name: "large",
      tensors: new Map([[embed.name, embed], [head.name, head]]),
      json: () => ({ tie_word_embeddings: true }),
      text: () => undefined,
      read({ name }, offset, into) {
        assert.ok(offset + into.length <= size);
        bytes += into.length;
        into.fill(7);
        const at = differs - offset;
        if (name === "lm_head.weight" && at >= 0 && at < into.length) into[at] = 8;
      },
      [Symbol.dispose]: () => {},
    };
    const config = withHeadOfFile(checkpoint).json("config.json") as Change;
    return [config.tie_word_embeddings, bytes];
  };
  assert.deepEqual(compared(-1), [true, 2 * size]);
  assert.deepEqual(compared(size - 1), [false, 2 * size]);
  assert.deepEqual(compared(5 << 20), [false, 2 * (8 << 20)]);
  assert.deepEqual(compared(-1, "F16"), [false, 0]);
});
