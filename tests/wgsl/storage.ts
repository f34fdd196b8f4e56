/** Storage buffers that every WebGPU adapter gives a shader: maxStorageBuffersPerShaderStage. */
const PROMISED = 8;

const PLAIN = "f32|f16|bf16";
const QUANTIZED = "q8|q4|u4|i8|f8";
const matmul = (formats: string, epilogue: string): RegExp =>
  RegExp(`^matmul_[a-z]+_(${formats})_${epilogue}_(${PLAIN})_`);

/** As `matmul`, of a kernel that norms x: taken where the adapter has so many buffers (hold/norms_rows.ts). */
const normed = (formats: string, epilogue: string): RegExp =>
  RegExp(`^matmul_resident_(${formats})_${epilogue}_(${PLAIN})_.*_normed_`);

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
  [RegExp(`^row_logits_(${PLAIN})_.*_scale`), 9],
  [/^expert_tensor_halved_swiglu_noted_.*_picked/, 9],
  [RegExp(`^expert_tensor_f16_(${QUANTIZED})_swiglu_\\d.*_picked`), 9],
  [RegExp(`^expert_tensor_f16_(${QUANTIZED})_swiglu_noted_.*_picked`), 10],
  [matmul(PLAIN, "qkv_bias"), 9],
  [matmul(QUANTIZED, "qkv"), 9],
  [matmul(QUANTIZED, "qkv_bias"), 10],
];

/** Buffers of two joined matmuls, of a matmul with attention, and of a norm's weights, before all else. */
const JOINED_MATMULS = 6;
const JOINED_ATTENTION = 10;
const NORMED = 1;

const JOINED = RegExp(
  `^joined_matmul_resident_(?<first>${PLAIN}|${QUANTIZED})_.*?(?:_normed_\\d+x\\d+_(?<ranges>\\d+)(?<experts>_experts_\\d+)?)?` +
    `_with_(?:matmul_resident_(?<second>${PLAIN}|${QUANTIZED})|(?<attention>attention_row)_.*?(?<normed>_normed)?_relayed)_`,
);

/**
 * What two launches that are joined bind, the first a matmul (shaders/joined.ts): taken where the adapter has so
 * many. Each quantized matrix has scales; a first that norms x and adds the sums of ranges to it has them and the
 * stream, one that adds experts' outputs their shares too; attention that norms queries and keys has their weights.
 */
function joinedBuffers(kernel: string): number | undefined {
  const groups = JOINED.exec(kernel)?.groups;
  if (!groups) return undefined;
  const { first = "", ranges, experts, second = "", attention, normed } = groups;
  const scales = [first, second].filter((format) => QUANTIZED.split("|").includes(format)).length;
  const added = experts !== undefined ? 3 : Number(ranges) > 0 ? 2 : 0;
  const x = ranges === undefined ? 0 : NORMED + added;
  return (attention === undefined ? JOINED_MATMULS : JOINED_ATTENTION) + x + scales +
    (normed === undefined ? 0 : 1);
}

/** What is wrong with the number of storage buffers of a kernel's WGSL, or undefined. */
export function storageFault(kernel: string, code: string): string | undefined {
  const count = [...code.matchAll(/var<storage/g)].length;
  const named = joinedBuffers(kernel) ?? MORE.find(([name]) => name.test(kernel))?.[1];
  const expected = named !== undefined && named > PROMISED ? named : undefined;
  if (expected === undefined ? count <= PROMISED : count === expected) return undefined;
  return `error: ${count} storage buffers, ${expected ?? `at most ${PROMISED}`} expected by ` +
    "tests/wgsl/storage.ts";
}
