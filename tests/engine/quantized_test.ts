import assert from "node:assert/strict";
import { loadWeights, openModels } from "../../src/engine/load.ts";
import { quantizeWarnings, weightReport } from "../../src/engine/quantize.ts";
import type { LoadedWeights } from "../../src/engine/models.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { checkQuantize, type QuantizeChoice } from "../../src/model/quantize_choice.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { decode, goldenCases, openFledgling, openSlot } from "./fledgling.ts";

const CHOICES: readonly QuantizeChoice[] = [
  { quantize: "q8" },
  { quantize: "q4" },
  { quantize: "q4", quantizeDraft: true },
];

const name = ({ quantize, quantizeDraft }: QuantizeChoice) =>
  `${quantize}${quantizeDraft ? ", draft too" : ""}`;

/** Bytes of all buffers, each once. */
function allocated({ target, draft }: LoadedWeights): number {
  const buffers = new Set<GPUBuffer>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { buffer } = value as Partial<Operand>;
    if (buffer) buffers.add(buffer);
    else Object.values(value).forEach(visit);
  };
  visit(target.weights);
  visit(draft?.weights);
  // d2t: made here where the checkpoint has none.
  return [...buffers].reduce((sum, { size }) => sum + size, 0);
}

for (const choice of [{}, ...CHOICES]) {
  Deno.test(`quantized weights: as many bytes as predicted, ${name(choice)}`, async () => {
    const gpu = await openGpu();
    using models = openModels({ algorithm: "EAGLE3" });
    const loaded = await loadWeights(gpu, models, choice);
    assert.equal(allocated(loaded), weightReport(models, choice).bytes);
    const { target, draft } = loaded;
    const { attention, mlp } = target.weights.layers[3]!;
    assert.ok(attention.kind === "heads" && mlp.kind === "dense");
    const formats = (...matrices: (Matrix | undefined)[]) => matrices.map((m) => m?.format);
    const format = choice.quantize ?? "bf16";
    assert.deepEqual(
      formats(attention.qkv, attention.o, mlp.gateUp, mlp.down),
      Array(4).fill(format),
    );
    assert.deepEqual(formats(target.weights.embed, target.weights.head), ["bf16", "bf16"]);
    const drafted = choice.quantizeDraft ? format : "bf16";
    assert.deepEqual(formats(draft?.weights.fc, draft?.weights.head), [drafted, drafted]);
    gpu[Symbol.dispose]();
  });
}

for (const choice of CHOICES) {
  Deno.test(`quantized weights: text is the same at num_steps 0 to 7, ${name(choice)}`, async () => {
    const prompts = goldenCases().slice(0, 8).map(({ prompt_ids }) => prompt_ids);
    const core = await openFledgling("eagle3", prompts.length, undefined, choice);
    using stack = new DisposableStack();
    const slots = prompts.map(() => stack.use(openSlot(core)));
    let [plain, accepted] = ["", 0];
    for (const numSteps of [0, 1, 3, 7]) {
      const found = await decode(core, slots, prompts, { numSteps, most: 32, sampling: [GREEDY] });
      const text = found.map(({ ids }) => ids.join()).join("\n");
      if (numSteps === 0) plain = text;
      else accepted += found.flatMap((one) => one.accepted).reduce((sum, n) => sum + n, 0);
      assert.equal(text, plain, `num_steps ${numSteps}`);
    }
    assert.ok(accepted > 50, `${accepted} drafts accepted`);
    core.gpu[Symbol.dispose]();
  });
}

Deno.test("quantized weights: what stays is told, a draft alone is refused", () => {
  const model = new URL("../golden/llama3", import.meta.url).pathname;
  using models = openModels({ model, draft: "none" });
  assert.deepEqual(quantizeWarnings(models, {}), []);
  const [line, ...rest] = quantizeWarnings(models, { quantize: "q4" });
  assert.match(line ?? "", /its matrices stay as they are, not q4: ".*" is \d+ wide, no multiple/);
  assert.deepEqual(rest, []);
  using embedded = openModels({});
  assert.deepEqual(quantizeWarnings(embedded, { quantize: "q4", quantizeDraft: true }), []);
  assert.throws(
    () => checkQuantize({ quantizeDraft: true }),
    /Cannot use --quantize-draft: --quantize does not say to what/,
  );
});
