import assert from "node:assert/strict";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { openPaper } from "../../src/engine/load/paper.ts";
import { quantizeWarnings, weightReport } from "../../src/engine/load/quantize.ts";
import type { LoadedWeights } from "../../src/engine/device/models.ts";
import { bytesOf, type Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Gpu, openGpu } from "../../src/gpu/device.ts";
import { checkQuantize, type QuantizeChoice } from "../../src/model/config/quantize_choice.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { decode, goldenCases, openFledgling, openWhole } from "./fledgling.ts";
import { exhaustive } from "../exhaustive.ts";

const CHOICES: readonly QuantizeChoice[] = [
  { quantize: "q8" },
  { quantize: "q4" },
  { quantize: "q4", quantizeDraft: true },
];

const name = ({ quantize, quantizeDraft }: QuantizeChoice) =>
  `${quantize}${quantizeDraft ? ", draft too" : ""}`;

/** All operands of the weights, each once. */
function operandsOf({ target, draft }: LoadedWeights): Operand[] {
  const operands = new Set<Operand>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("buffer" in value) operands.add(value as Operand);
    else Object.values(value).forEach(visit);
  };
  visit(target.weights);
  visit(draft?.weights);
  return [...operands];
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0);

/** The GPU, and every buffer that is made on it from now on. */
function recorded(gpu: Gpu): Gpu & { readonly made: readonly GPUBuffer[] } {
  const { device } = gpu;
  const made: GPUBuffer[] = [];
  const createBuffer = device.createBuffer.bind(device);
  device.createBuffer = (descriptor) => {
    const buffer = createBuffer(descriptor);
    // Constants of a software adapter's kernels are a part of its pipelines, and a few words.
    if (!(descriptor.usage & GPUBufferUsage.UNIFORM)) made.push(buffer);
    return buffer;
  };
  return { ...gpu, made };
}

for (const choice of [{}, ...CHOICES]) {
  Deno.test(`quantized weights: as many bytes as predicted, ${name(choice)}`, async () => {
    const gpu = recorded(await openGpu());
    using models = openModels({ algorithm: "EAGLE3" });
    const loaded = await loadWeights(gpu, models, choice);
    const { tensorBytes } = openPaper(models, choice, gpu).measured;
    const predicted = weightReport(models, choice, tensorBytes).bytes;
    const operands = operandsOf(loaded);
    assert.equal(sum(operands.map(bytesOf)), predicted);
    const [slab, ...others] = gpu.made.filter(({ label }) => !label.startsWith("quantizer."));
    assert.deepEqual(others, []);
    assert.ok(operands.every(({ buffer }) => buffer === slab));
    // Operands begin at multiples of 256.
    const over = (slab?.size ?? 0) - predicted;
    assert.ok(over >= 0 && over < 256 * operands.length, `${over} bytes over`);
    assert.ok(over < 0.03 * predicted, `${over} bytes over ${predicted}`);
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
  exhaustive.test(`quantized weights: text is the same at num_steps 0 to 7, ${name(choice)}`, async () => {
    const prompts = goldenCases().slice(0, 8).map(({ prompt_ids }) => prompt_ids);
    const runner = await openFledgling("eagle3", prompts.length, undefined, choice);
    using stack = new DisposableStack();
    const sequences = prompts.map(() => stack.use(openWhole(runner)));
    let [plain, accepted] = ["", 0];
    for (const numSteps of [0, 1, 3, 7]) {
      const found = await decode(runner, sequences, prompts, {
        numSteps,
        most: 32,
        sampling: [GREEDY],
      });
      const text = found.map(({ ids }) => ids.join()).join("\n");
      if (numSteps === 0) plain = text;
      else accepted += found.flatMap((one) => one.accepted).reduce((sum, n) => sum + n, 0);
      assert.equal(text, plain, `num_steps ${numSteps}`);
    }
    assert.ok(accepted > 50, `${accepted} drafts accepted`);
    runner.gpu[Symbol.dispose]();
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
