/** Storage buffers that every WebGPU adapter gives a shader: maxStorageBuffersPerShaderStage. */
const PROMISED = 8;

const PLAIN = "f32|f16|bf16";
const QUANTIZED = "q8|q4|u4|i8|f8";
const matmul = (formats: string, epilogue: string): RegExp =>
  RegExp(`^matmul_[a-z]+_(${formats})_${epilogue}_(${PLAIN})_`);

/** As `matmul`, of a kernel that norms x: taken where the adapter has so many buffers (hold/norms_rows.ts). */
const normed = (formats: string, epilogue: string): RegExp =>
  RegExp(`^matmul_resident_(${formats})_${epilogue}_(${PLAIN})_.*_normed_`);

/** Launches that are joined, the first a matmul that norms x and adds sums of ranges to it: where the adapter has so many buffers. */
const joined = (formats: string, second: string, ranges = "[1-9]\\d*"): RegExp =>
  RegExp(`^joined_matmul_resident_(${formats})_.*_normed_\\d+x\\d+_${ranges}_with_${second}`);

/** As `joined`, where the first takes rows that were normed before. */
const joinedRows = (formats: string, second: string): RegExp =>
  RegExp(`^joined_matmul_resident_(${formats})_relayed_[\\d_]+_[a-z]+_\\d+_\\d+_with_${second}`);

/** Kernels that want more than promised, by name. docs/models.md tells which models these are. */
const MORE: readonly (readonly [kernel: RegExp, buffers: number])[] = [
  [normed(PLAIN, "qkv"), 11],
  [normed(PLAIN, "qkv_bias"), 12],
  [normed(QUANTIZED, "qkv"), 12],
  [normed(QUANTIZED, "qkv_bias"), 13],
  // Beside matrix units, where the adapter has so many (plan/target.ts).
  [RegExp(`^rms_norm_verified_(${PLAIN})_[a-z]+_input_scale_`), 10],
  // Likewise (norm/norm_pair.ts).
  [RegExp(`^norm_pair_(${PLAIN})_index_[a-z]+_scale`), 10],
  [RegExp(`^norm_pair_(${PLAIN})_rows_[a-z]+_scale`), 9],
  [RegExp(`^attention_row_(${PLAIN})_.*_normed`), 9],
  [joined(PLAIN, `matmul_resident_(${PLAIN})_.*_relayed`), 9],
  [joined(QUANTIZED, `matmul_resident_(${QUANTIZED})_.*_relayed`), 11],
  [joined(QUANTIZED, `matmul_resident_(${QUANTIZED})_.*_relayed`, "0"), 9],
  [joined(PLAIN, "attention_row_.*_normed_relayed_"), 14],
  [joined(PLAIN, "attention_row_.*_relayed_"), 13],
  [joined(PLAIN, "attention_row_.*_normed_relayed_", "0"), 12],
  [joined(PLAIN, "attention_row_.*_relayed_", "0"), 11],
  [joined(QUANTIZED, "attention_row_.*_normed_relayed_"), 15],
  [joined(QUANTIZED, "attention_row_.*_relayed_"), 14],
  [joined(QUANTIZED, "attention_row_.*_normed_relayed_", "0"), 13],
  [joined(QUANTIZED, "attention_row_.*_relayed_", "0"), 12],
  [joinedRows(PLAIN, "attention_row_.*_normed_relayed_"), 11],
  [joinedRows(PLAIN, "attention_row_.*_relayed_"), 10],
  [joinedRows(QUANTIZED, "attention_row_.*_normed_relayed_"), 12],
  [joinedRows(QUANTIZED, "attention_row_.*_relayed_"), 11],
  [RegExp(`^row_logits_(${PLAIN})_.*_scale`), 9],
  [/^expert_tensor_halved_swiglu_noted_.*_picked/, 9],
  [RegExp(`^expert_tensor_f16_(${QUANTIZED})_swiglu_\\d.*_picked`), 9],
  [RegExp(`^expert_tensor_f16_(${QUANTIZED})_swiglu_noted_.*_picked`), 10],
  [matmul(PLAIN, "qkv_bias"), 9],
  [matmul(QUANTIZED, "qkv"), 9],
  [matmul(QUANTIZED, "qkv_bias"), 10],
];

/** What is wrong with the number of storage buffers of a kernel's WGSL, or undefined. */
export function storageFault(kernel: string, code: string): string | undefined {
  const count = [...code.matchAll(/var<storage/g)].length;
  const expected = MORE.find(([name]) => name.test(kernel))?.[1];
  if (expected === undefined ? count <= PROMISED : count === expected) return undefined;
  return `error: ${count} storage buffers, ${expected ?? `at most ${PROMISED}`} expected by ` +
    "tests/wgsl/storage.ts";
}
