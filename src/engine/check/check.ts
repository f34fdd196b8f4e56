import type { KvDtype } from "../../gpu/kv.ts";
import { UsageError } from "../../errors.ts";
import { type GpuChoice, openGpu } from "../../gpu/device.ts";
import type { Quantization } from "../../gpu/weight_format.ts";
import { gpuMemory } from "../../gpu/memory.ts";
import { withRoundedBuffers } from "../../model/config/rounded_buffers.ts";
import type { DType } from "../../model/files/safetensors.ts";
import { openTensorFile, type TensorFiles } from "../../model/files/tensor_files.ts";
import { widen } from "../../model/files/widen.ts";
import { chain } from "../../speculate/round_shape.ts";
import { GREEDY } from "../../speculate/sampling.ts";
import type { Runner } from "../device/runner.ts";
import { openRunner } from "../device/device_runner.ts";
import { fitMemory, loadOrAdvise } from "../load/fits.ts";
import { forward, hidden } from "../device/logits_dump.ts";
import { openPaper } from "../load/paper.ts";
import type { OpenedModels } from "../load/opened_models.ts";
import type { Sequence } from "../device/sequence.ts";
import { openSequence, prefillPrompt } from "../device/single_sequence.ts";
import { quantizeWarnings } from "../load/quantize.ts";
import { type LoadProgress, loadWeights, openModels } from "../load/load.ts";

/** How far one computed tensor is from the expected one. */
export interface TensorError {
  readonly name: string;
  readonly maxAbs: number;
  readonly maxRel: number;
  /** `maxAbs` in standard deviations of the expected values; compared with the tolerance. */
  readonly relToStd: number;
  readonly ok: boolean;
}

export interface CheckReport {
  readonly tensors: readonly TensorError[];
  readonly argmaxAgreement: { readonly same: number; readonly total: number };
  /** Undefined when the file has no `greedy_ids`. */
  readonly greedyAgreement: { readonly same: number; readonly total: number } | undefined;
  readonly ok: boolean;
}

/**
 * Runs the target over `input_ids` of a file of expected values (transformers' `logits` [tokens,
 * vocab] and `hidden_states.N` [tokens, hidden], N = 0 for the embedding, the last one after the
 * final norm) and compares. `greedy_ids`, where present, begins with a part of `input_ids`; the
 * rest is decoded greedily.
 *
 * @param open opens the adapter; tests have their own.
 * @throws UsageError when the file does not hold what is compared.
 */
export async function checkModel(
  given: GpuChoice & {
    readonly model?: string;
    readonly quantize?: Quantization;
    /** How keys and values are kept; absent = f32. */
    readonly kvDtype?: KvDtype;
    readonly expected: string;
    /** Largest error allowed, in standard deviations of the expected tensor. */
    readonly tolerance: number;
    /** The expected values are of a model that was cast to bf16 (`withRoundedBuffers`); default false. */
    readonly roundedBuffers?: boolean;
    readonly onProgress?: (progress: LoadProgress) => void;
    readonly onWarning?: (line: string) => void;
  },
  open: typeof openGpu = openGpu,
): Promise<CheckReport> {
  // The check looks for faults of the implementation, so nothing is rounded that need not be.
  const options = { precision: "f32", ...given } as const;
  const { model, expected: path, tolerance } = options;
  using opened = openModels(model === undefined ? { draft: "none" } : { model, draft: "none" });
  const models = options.roundedBuffers ? rounded(opened) : opened;
  const warnings = [...models.warnings, ...quantizeWarnings(models, options)];
  for (const line of warnings) options.onWarning?.(line);
  using file = openTensorFile(path);
  const { config } = models.target;
  const idsOf = (name: string) => readIds(file, path, name, config.vocabSize);
  const ids = idsOf("input_ids");
  const greedyIds = file.tensors.has("greedy_ids") ? idsOf("greedy_ids") : undefined;
  using gpu = await open(options);
  // No longer than the texts: some ropes depend on it, as transformers' do on the text's length.
  const longest = Math.max(ids.length, greedyIds?.length ?? 0);
  const settings = { ...options, contextLength: longest, tiers: [chain(0)], sizeFlags: {} };
  const paper = openPaper(models, options, gpu);
  const asked = { models, settings, gpu, paper };
  const { capacity } = await fitMemory(asked, gpuMemory);
  const runner = await loadOrAdvise(asked, async () => {
    const weights = await loadWeights(gpu, models, { ...options, measured: paper.measured });
    return await openRunner(gpu, weights, capacity);
  });
  using sequence = openSequence(runner);
  runner.reserve(sequence, longest);
  const names = ["logits", ...Array.from({ length: config.layers.length + 1 }, (_, i) => hidden(i))]
    .filter((name) => file.tensors.has(name));
  const actual = await forward(runner, sequence, ids, names);
  const tensors = names.map((name) => {
    const found = actual.get(name) as Float32Array;
    const wanted = readFloats(file, path, name, found.length);
    return { found, ...compare(name, found, wanted, tolerance), wanted };
  });
  const logits = tensors.find(({ name }) => name === "logits");
  if (!logits) throw new UsageError(`Cannot check against "${path}": it has no tensor "logits"`);
  const argmaxAgreement = agreement(
    argmaxes(logits.found, config.vocabSize),
    argmaxes(logits.wanted, config.vocabSize),
  );
  return {
    tensors: tensors.map(({ name, maxAbs, maxRel, relToStd, ok }) => (
      { name, maxAbs, maxRel, relToStd, ok }
    )),
    argmaxAgreement,
    greedyAgreement: greedyIds && await greedyAgreement(runner, sequence, ids, greedyIds),
    ok: tensors.every(({ ok }) => ok),
  };
}

function rounded(models: OpenedModels): OpenedModels {
  const { checkpoint, config } = models.target;
  return { ...models, target: { checkpoint, config: withRoundedBuffers(config) } };
}

/** Decodes greedily after the prefix that `ids` and `expected` share. */
async function greedyAgreement(
  runner: Runner,
  sequence: Sequence,
  ids: readonly number[],
  expected: readonly number[],
): Promise<{ same: number; total: number }> {
  let prompt = 0;
  while (prompt < ids.length && ids[prompt] === expected[prompt]) prompt++;
  if (prompt === 0) {
    throw new UsageError(`Cannot check greedy_ids: they do not begin as input_ids do`);
  }
  runner.setSampling(sequence, GREEDY);
  const found = [await prefillPrompt(runner, sequence, ids.slice(0, prompt))];
  while (prompt + found.length < expected.length) {
    const [round] = await runner.rounds([sequence], { shape: chain(0), count: 1 });
    const ids = round?.sequences[0]?.ids ?? [];
    // Logits that are no numbers choose no token.
    if (ids.length === 0) break;
    found.push(...ids);
  }
  return agreement(found, expected.slice(prompt));
}

function compare(
  name: string,
  found: Float32Array,
  wanted: Float32Array,
  tolerance: number,
): TensorError {
  let maxAbs = 0;
  let maxRel = 0;
  for (const [i, value] of wanted.entries()) {
    const error = Math.abs((found[i] ?? NaN) - value);
    maxAbs = Math.max(maxAbs, error); // NaN stays
    if (value !== 0) maxRel = Math.max(maxRel, error / Math.abs(value));
  }
  const relToStd = maxAbs / deviation(wanted);
  return { name, maxAbs, maxRel, relToStd, ok: relToStd <= tolerance };
}

export function deviation(values: Float32Array): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return Math.sqrt(square);
}

export function argmaxes(logits: Float32Array, vocab: number): number[] {
  return Array.from({ length: logits.length / vocab }, (_, row) => {
    const values = logits.subarray(row * vocab, (row + 1) * vocab);
    return values.reduce((best, value, i) => value > (values[best] ?? NaN) ? i : best, 0);
  });
}

export function agreement(
  found: readonly number[],
  wanted: readonly number[],
): { same: number; total: number } {
  return { same: wanted.filter((id, i) => id === found[i]).length, total: wanted.length };
}

function readFloats(
  file: TensorFiles,
  path: string,
  name: string,
  length: number,
): Float32Array {
  const values = widen(...readBytes(file, path, name, ["F32", "F16", "BF16"]));
  if (values.length === length) return values;
  throw new UsageError(
    `Cannot check against "${path}": tensor "${name}" has ${values.length} values, the model ${length}`,
  );
}

/** At least one token id of the model. */
function readIds(file: TensorFiles, path: string, name: string, vocabSize: number): number[] {
  const [bytes, dtype] = readBytes(file, path, name, ["I32", "I64"]);
  const ids = dtype === "I64"
    ? Array.from(new BigInt64Array(bytes.buffer), Number)
    : [...new Int32Array(bytes.buffer)];
  const refuse = (why: string) =>
    new UsageError(`Cannot check against "${path}": tensor "${name}" ${why}`);
  if (ids.length === 0) throw refuse("is empty");
  const wrong = ids.find((id) => id < 0 || id >= vocabSize);
  if (wrong === undefined) return ids;
  throw refuse(`has ${wrong}, token ids are 0 to ${vocabSize - 1}`);
}

function readBytes(
  file: TensorFiles,
  path: string,
  name: string,
  dtypes: readonly DType[],
): [Uint8Array<ArrayBuffer>, DType] {
  const tensor = file.tensors.get(name);
  if (!tensor || !dtypes.includes(tensor.dtype)) {
    const why = tensor ? `is ${tensor.dtypeName}, expected ${dtypes.join(" or ")}` : "is missing";
    throw new UsageError(`Cannot check against "${path}": tensor "${name}" ${why}`);
  }
  const bytes = new Uint8Array(tensor.size);
  file.read(tensor, 0, bytes);
  return [bytes, tensor.dtype];
}
