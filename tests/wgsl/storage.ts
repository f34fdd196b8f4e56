/** Storage buffers that every WebGPU adapter gives a shader: maxStorageBuffersPerShaderStage. */
const PROMISED = 8;
/** What kernels on matrix units may have: each is taken where the adapter has so many. */
const MAX_ON_UNITS = 16;

const PLAIN = "f32|f16|bf16";
const QUANTIZED = "q8|q4|u4|i8|f8|mxfp4|nvfp4";
const matmul = (formats: string, epilogue: string): RegExp =>
  RegExp(`^matmul_[a-z]+_(${formats})_${epilogue}_(${PLAIN})_`);

/** Kernels that want more than promised, by name. docs/models.md tells which models these are. */
const MORE: readonly (readonly [kernel: RegExp, buffers: number])[] = [
  // Beside matrix units, where the adapter has so many (lower/rewrites/verify_in_norm.ts).
  [RegExp(`^rms_norm_verified_(${PLAIN})_[a-z]+_input_scale_`), 10],
  // Where the adapter has so many (lower/rewrites/branch_in_norm.ts).
  [/^rms_norm_normed_scaled_[a-z]+_input_scale_/, 9],
  [/^rms_norm_normed_scaled_[a-z]+_slot_scale_/, 10],
  [/^rms_norm_normed_[a-z]+_slot_scale_/, 9],
  // Likewise, with experts in the branch (lower/rewrites/norm_sum_in_norm.ts).
  ...([["nothing", 0], ["input", 1], ["slot", 2]] as const).flatMap(([keep, kept]) =>
    ([["", 0], ["scaled_", 1]] as const).flatMap(([scaled, scalar]) =>
      ([["\\d", 0], ["scale_", 2]] as const).map(([note, scales]) =>
        [
          RegExp(`^rms_norm_normed_\\d+_${scaled}(store|half|pair)_${keep}_${note}`),
          9 + kept + scalar + scales,
        ] as const
      )
    )
  ),
  // Likewise (norm/norm_pair.ts).
  [RegExp(`^norm_pair_(${PLAIN})_index_[a-z]+_scale`), 10],
  [RegExp(`^norm_pair_(${PLAIN})_rows_[a-z]+_scale`), 9],
  // Where the adapter has so many (recurrent/delta_rule.ts).
  [/^delta_rule_.*_conv(-|$)/, 9],
  [RegExp(`^attention_row_(${PLAIN})_.*_normed`), 9],
  [RegExp(`^router_logits_(${PLAIN})_.*_bias_scale`), 10],
  [RegExp(`^router_logits_(${PLAIN})_.*_[1-9]\\d*_scale`), 9],
  [/^rms_norm_experts_\d+_bias_[a-z]+_input_scale/, 10],
  [/^rms_norm_experts_\d+_bias_[a-z]+_nothing_scale/, 9],
  [RegExp(`^matmul_resident_(${QUANTIZED})_bias_.*_combined_\\d+_sinks`), 9],
  [matmul(PLAIN, "qkv_bias"), 9],
  [matmul(QUANTIZED, "qkv"), 9],
  [matmul(QUANTIZED, "qkv_bias"), 10],
];

/** What a launch that is joined binds besides scales, before all else: weights, x and out; and what attention does. */
const MATMUL = 3;
const ATTENTION = 7;

/** Matmuls of quantized weights on matrix units. */
const UNITS = RegExp(`^matmul_tensor(_few)?_f16_(${QUANTIZED})_`);

const PART = RegExp(
  `^matmul_[a-z]+_(?<format>${PLAIN}|${QUANTIZED})_.*?` +
    `(?:_normed_\\d+x\\d+_(?<ranges>\\d+)(?<experts>_experts_\\d+)?(?<handoff>_handoff)?` +
    `(?<branch>_branch(?<scalar>_scaled)?)?(?<kept>_kept)?(?<unstored>_unstored)?|` +
    `(?<combined>_combined_\\d+(?<sunk>_sinks)?(?:_gated)?))?$`,
);

/** What the epilogue of a matmul that norms x binds. */
const EPILOGUES: readonly (readonly [matmul: RegExp, buffers: number])[] = [
  [/^matmul_resident_[a-z\d]+_qkv_bias_/, 6],
  [/^matmul_resident_[a-z\d]+_qkv_/, 5],
  [/^matmul_resident_[a-z\d]+_(bias|gelu_by)_/, 1],
];

/** Launches that find experts, and their first matmul, which other matmuls are fused with. */
const EXPERT_PARTS: readonly (readonly [part: RegExp, buffers: number])[] = [
  [RegExp(`^router_logits_(${PLAIN})_.*_0(_|$)`), 6],
  [RegExp(`^router_logits_(${PLAIN})_`), 7],
  [/^route_sigmoid/, 4],
  [/^route_/, 3],
  [RegExp(`^expert_matmul_(${PLAIN})_.*_(picked|chosen)`), 6],
  [RegExp(`^expert_matmul_(${QUANTIZED})_.*_(picked|chosen)`), 7],
  [RegExp(`^expert_matmul_(${PLAIN})_`), 4],
  [RegExp(`^expert_matmul_(${QUANTIZED})_`), 5],
];

/** Biases of logits, factors of experts, and scales of rows. */
function countEnds(part: string): number {
  return Number(/_bias/.test(part)) + Number(/_factors/.test(part)) +
    (/_scale$/.test(part) ? 2 : 0);
}

/** What a matmul binds besides what its epilogue does. */
function matmulBuffers(kernel: string): number {
  const { format = "", ranges, experts, handoff, branch, scalar, kept, unstored, combined, sunk } =
    PART.exec(kernel)?.groups ?? {};
  const sums = Number(ranges) > 0 ? 2 : 0;
  const added = handoff ? 1 : experts ? 3 : sums;
  return MATMUL + Number(QUANTIZED.split("|").includes(format)) +
    (combined ? 3 : 0) + (sunk ? 1 : 0) + (ranges === undefined ? 0 : 1 + added) +
    (branch ? 1 : 0) + (scalar ? 1 : 0) + (kept ? 1 : 0) - (unstored ? 1 : 0);
}

/** What a matmul that norms x binds: taken where the adapter has so many (prologue/norms_rows.ts). */
function normedBuffers(kernel: string): number | undefined {
  if (!/^matmul_resident_.*_normed_/.test(kernel)) return undefined;
  const [, own = 0] = EPILOGUES.find(([pattern]) => pattern.test(kernel)) ?? [];
  return matmulBuffers(kernel) + own;
}

/**
 * What launches that are joined (kernels/joined.ts) or fused (kernels/fused.ts) bind: taken where the adapter has so
 * many. Words that are waited for are bound by who makes them. A quantized matrix has scales; a matmul that norms x has
 * the norm's weights, one that adds sums to it these and the stream, or experts' outputs their shares too; one that
 * adds the splits of attention has their sums and peaks, and the rows; attention that norms queries and keys has their
 * weights.
 */
function joinedBuffers(kernel: string): number | undefined {
  const [, parts] = /^(?:joined|fused_\d+)_(.*)$/.exec(kernel) ?? [];
  if (parts === undefined) return undefined;
  const buffers = parts.split("_with_").map((part) => {
    if (part.startsWith("attention_row_")) return ATTENTION + Number(part.includes("_normed"));
    const ofExperts = EXPERT_PARTS.find(([pattern]) => pattern.test(part));
    if (ofExperts) return ofExperts[1] + countEnds(part);
    // Scales of the rows of both, and of groups of weights.
    if (part.startsWith("matmul_tensor_")) return MATMUL + 2 + Number(UNITS.test(part));
    return matmulBuffers(part);
  });
  return buffers.reduce((sum, each) => sum + each, 0);
}

/**
 * What is wrong with the number of storage buffers of a kernel's WGSL, or undefined.
 *
 * @param name as record.ts has it: a hash may follow.
 */
export function storageFault(name: string, code: string): string | undefined {
  const kernel = name.replace(/-[0-9a-f]+$/, "");
  const count = [...code.matchAll(/var<storage/g)].length;
  const named = joinedBuffers(kernel) ?? normedBuffers(kernel) ??
    MORE.find(([pattern]) => pattern.test(kernel))?.[1];
  const expected = named !== undefined && named > PROMISED ? named : undefined;
  if (/^(matmul|expert)_tensor_/.test(kernel) && count <= MAX_ON_UNITS) return undefined;
  if (expected === undefined ? count <= PROMISED : count === expected) return undefined;
  return `error: ${count} storage buffers, ${expected ?? `at most ${PROMISED}`} expected by ` +
    "tests/wgsl/storage.ts";
}
