import { equal, match } from "node:assert/strict";
import { storageFault } from "./storage.ts";

/** WGSL with so many storage buffers. */
const binds = (count: number): string => "var<storage, read> x: array<u32>;\n".repeat(count);

const NORMED = "joined_matmul_resident_q8_gate_silu_handoff_1_1_16_8_packed_32_1_normed_32x1";
const MLP = "matmul_resident_bf16_store_1_1_16_8_floats_16_part_1_handoff";
const O = "joined_matmul_resident_q4_handoff_1_1_16_8_packed_32_1_combined_32";
const GATE_UP = "matmul_resident_bf16_gate_silu_handoff_1_1_16_8_floats_32_2_normed_32x1_1_handoff";
const QKV = "joined_matmul_resident_bf16_handoff_1_1_16_16_floats_32_2";

const ROW = "matmul_resident_bf16_store_3_2_16_8_floats_32_2_normed_32x1_0_experts_4";

const CASES: readonly (readonly [kernel: string, buffers: number])[] = [
  [`${NORMED}_1_with_${MLP}`, 10],
  [`${NORMED}_1_with_${MLP.replace("bf16", "q4")}`, 11],
  [`${NORMED}_0_with_${MLP.replace("bf16", "q8")}`, 9],
  [`${O}_with_${GATE_UP}_with_${MLP}`, 15],
  [`${QKV}_with_attention_row_f32_32_2_handoff_512`, 10],
  [`${QKV}_with_attention_row_f32_32_2_normed_handoff_256`, 11],
  [`${QKV}_normed_32x1_1_with_attention_row_bf16_32_2_handoff_512`, 13],
  [`${QKV}_normed_32x1_1_kept_with_attention_row_bf16_32_2_handoff_512`, 14],
  [`${QKV.replace("bf16", "q8")}_normed_32x1_0_with_attention_row_f32_32_2_normed_handoff_256`, 13],
  ["matmul_resident_bf16_qkv_f32_1_2_16_8_floats_32_2_normed_32x1_1", 11],
  ["matmul_resident_bf16_qkv_f32_1_2_16_8_floats_32_2_normed_32x1_1_kept", 12],
  ["matmul_resident_q8_qkv_bias_bf16_2_2_16_8_packed_32_2_normed_32x1_1_kept", 14],
  ["matmul_resident_q4_swiglu_1_2_16_40_packed_64_2_normed_512x2_4_branch_scaled_kept", 10],
  ["matmul_resident_q8_store_1_2_16_8_packed_32_2_normed_32x1_0_experts_4_kept", 9],
  [`fused_128_${ROW}_with_${ROW}_unstored`, 13],
  ["matmul_staged_q8_qkv_f16_1_8", 9],
];

Deno.test("kernels that bind more storage buffers than promised bind just the number told", () => {
  for (const [kernel, buffers] of CASES) {
    equal(storageFault(kernel, binds(buffers)), undefined, kernel);
    equal(storageFault(`${kernel}-2ce25091`, binds(buffers)), undefined, kernel);
    for (const other of [buffers - 1, buffers + 1]) {
      match(storageFault(kernel, binds(other)) ?? "", RegExp(`${buffers} expected`), kernel);
    }
  }
});

Deno.test("all others have the promised eight at most", () => {
  const kernels = ["rms_norm", `${QKV}_with_${MLP}`, `${NORMED}_0_with_${MLP}`];
  for (const kernel of kernels) {
    equal(storageFault(kernel, binds(8)), undefined, kernel);
    match(storageFault(kernel, binds(9)) ?? "", /9 storage buffers, at most 8 expected/, kernel);
  }
});
