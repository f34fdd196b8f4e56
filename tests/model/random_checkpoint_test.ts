import assert from "node:assert/strict";
import { openRandomModels } from "../../src/engine/load/random_models.ts";
import { UsageError } from "../../src/errors.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { parseDraftConfig } from "../../src/model/config/draft_config.ts";
import { readOffsets } from "../../src/model/weights/draft_weights.ts";
import { randomCheckpoint } from "../../src/model/weights/random_checkpoint.ts";
import { checkTensors, draftTensors, targetTensors } from "../../src/model/weights/tensors.ts";
import { target, TARGET_JSON } from "./drafts.ts";
import { type Files, withFolder } from "./folders.ts";

const EAGLE3_JSON = {
  ...TARGET_JSON,
  architectures: ["LlamaForCausalLMEagle3"],
  num_hidden_layers: 1,
  draft_vocab_size: 12,
};
const EAGLE1_JSON = { ...TARGET_JSON, num_hidden_layers: 1 };

/** The draft that a config.json alone describes, checked as a real one is. */
function draftOf(json: unknown) {
  let config: ReturnType<typeof parseDraftConfig> | undefined;
  withFolder({ "draft.json": json }, (folder) => {
    const checkpoint = randomCheckpoint(`${folder}/draft.json`, "draft");
    config = parseDraftConfig(checkpoint, target());
    assert.deepEqual(checkTensors(checkpoint, draftTensors(config)), []);
  });
  assert.ok(config);
  return config;
}

Deno.test("random checkpoint: a target has the tensors its config asks for", () => {
  for (const change of [{}, { tie_word_embeddings: true }, { model_type: "qwen3", head_dim: 8 }]) {
    const json = { ...TARGET_JSON, ...change, architectures: undefined };
    withFolder({ "big.json": json }, (folder) => {
      const checkpoint = randomCheckpoint(`${folder}/big.json`, "target");
      assert.equal(checkpoint.name, `${folder}/big.json`);
      const specs = targetTensors(target({ ...change, architectures: undefined }));
      assert.deepEqual([...checkpoint.tensors.keys()], specs.map(({ name }) => name));
      assert.deepEqual(checkTensors(checkpoint, specs), []);
      assert.equal(checkpoint.json("tokenizer.json"), undefined);
      assert.equal(checkpoint.text("chat_template.jinja"), undefined);
    });
  }
});

Deno.test("random checkpoint: tensors that several matrices are rows of are whole", () => {
  const path = new URL("../golden/phi3/config.json", import.meta.url);
  const json = JSON.parse(Deno.readTextFileSync(path));
  const specs = targetTensors(parseModelConfig("phi3", json, undefined));
  assert.deepEqual(checkTensors(randomCheckpoint(path.pathname, "target"), specs), []);
});

Deno.test("random checkpoint: EAGLE-3 by its name or by draft_vocab_size", () => {
  for (const architectures of [["LlamaForCausalLMEagle3"], ["LlamaForCausalLM"]]) {
    const { algorithm, draftVocabSize, ownHead, ownEmbedding, reducedVocab, auxLayers } = draftOf({
      ...EAGLE3_JSON,
      architectures,
    });
    assert.deepEqual(
      { algorithm, draftVocabSize, ownHead, ownEmbedding, reducedVocab, auxLayers },
      {
        algorithm: "EAGLE3",
        draftVocabSize: 12,
        ownHead: true,
        ownEmbedding: false,
        reducedVocab: true,
        auxLayers: [2, 3, 3],
      },
    );
  }
});

Deno.test("random checkpoint: EAGLE-3 over the whole vocabulary, and of another width", () => {
  const whole = draftOf({ ...EAGLE3_JSON, draft_vocab_size: undefined });
  assert.deepEqual([whole.draftVocabSize, whole.reducedVocab], [40, false]);
  const narrow = draftOf({ ...EAGLE3_JSON, hidden_size: 8, head_dim: 8, target_hidden_size: 16 });
  assert.deepEqual([narrow.ownEmbedding, narrow.targetHiddenSize], [true, 16]);
});

Deno.test("random checkpoint: EAGLE uses the target's head; fc has a bias unless it says no", () => {
  const draft = draftOf(EAGLE1_JSON);
  assert.deepEqual([draft.algorithm, draft.ownHead, draft.fcBias], ["EAGLE", false, true]);
  assert.equal(draftOf({ ...EAGLE1_JSON, bias: false }).fcBias, false);
});

Deno.test("random checkpoint: d2t reads as zeros, nothing else can be read", () => {
  withFolder({ "draft.json": EAGLE3_JSON }, (folder) => {
    const checkpoint = randomCheckpoint(`${folder}/draft.json`, "draft");
    const tensor = (name: string) => {
      const found = checkpoint.tensors.get(name);
      assert.ok(found);
      return found;
    };
    const offsets = readOffsets(checkpoint, tensor("d2t"), parseDraftConfig(checkpoint, target()));
    assert.deepEqual([...offsets], Array(12).fill(0));
    const read = () => checkpoint.read(tensor("fc.weight"), 0, new Uint8Array(2));
    assert.throws(read, /tensor fc.weight of .* is random/);
  });
});

function rejects(files: Files, configs: { target: string; draft?: string }, message: RegExp): void {
  withFolder(files, (folder) => {
    const within = (file: string) => `${folder}/${file}`;
    const { target, draft } = configs;
    const paths = {
      target: within(target),
      ...draft === undefined ? {} : { draft: within(draft) },
    };
    assert.throws(() => openRandomModels(paths), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, message);
      return true;
    });
  });
}

Deno.test("random checkpoint: bad files are told apart", () => {
  const files = {
    "big.json": TARGET_JSON,
    "text.json": "{",
    "list.json": [],
    "gpt.json": { ...TARGET_JSON, model_type: "gpt2" },
    "flat.json": { ...TARGET_JSON, hidden_size: undefined },
    "odd.json": { ...EAGLE3_JSON, draft_vocab_size: 41 },
    "wide.json": { ...EAGLE3_JSON, target_hidden_size: 24 },
    "variant.json": { ...EAGLE3_JSON, layernorms: true },
  };
  rejects(files, { target: "none.json" }, /^Cannot open ".*none\.json": no such file$/);
  rejects(files, { target: "." }, /^Cannot open ".*": it must be a config\.json \(/);
  rejects(files, { target: "text.json" }, /^Cannot open ".*text\.json": config\.json is not JSON/);
  rejects(files, { target: "list.json" }, /list\.json": config\.json is not a JSON object$/);
  rejects(files, { target: "gpt.json" }, /gpt\.json": config\.json has .*"gpt2", known are/);
  rejects(files, { target: "flat.json" }, /flat\.json": config\.json has no hidden_size$/);
  rejects(files, { target: "big.json", draft: "odd.json" }, /odd\.json": .*draft_vocab_size 41/);
  rejects(files, { target: "big.json", draft: "wide.json" }, /^Cannot use draft ".*wide\.json"/);
  rejects(files, { target: "big.json", draft: "variant.json" }, /has layernorms true/);
});
