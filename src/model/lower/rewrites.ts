/** The rewrites, in the order in which they are applied. Without any of them a plan is still correct, but slower. */
import type { Rewrite } from "./rewrite.ts";
import { addAfterNorm } from "./rewrites/add_after_norm.ts";
import { addInMatmul } from "./rewrites/add_in_matmul.ts";
import { addInNorm } from "./rewrites/add_in_norm.ts";
import { branchInNorm } from "./rewrites/branch_in_norm.ts";
import { chooseInExperts } from "./rewrites/choose_in_experts.ts";
import { combineInStream } from "./rewrites/combine_in_stream.ts";
import { combineIntoShared } from "./rewrites/combine_into_shared.ts";
import { concatInPlace } from "./rewrites/concat_in_place.ts";
import { convInDelta } from "./rewrites/conv_in_delta.ts";
import { copyInNorm } from "./rewrites/copy_in_norm.ts";
import { elementwiseInMatmul } from "./rewrites/elementwise_in_matmul.ts";
import { embedInNorm } from "./rewrites/embed_in_norm.ts";
import { expertSumsInPlace } from "./rewrites/expert_sums.ts";
import { expertsInNorm } from "./rewrites/experts_in_norm.ts";
import { f16Rows } from "./rewrites/f16_rows.ts";
import { gateByInMatmul } from "./rewrites/gate_by_in_matmul.ts";
import { gateInAttention } from "./rewrites/gate_in_attention.ts";
import { gateInMatmul } from "./rewrites/gate_in_matmul.ts";
import { gatedNormInMatmul } from "./rewrites/gated_norm_in_matmul.ts";
import { gatherInNorm } from "./rewrites/gather_in_norm.ts";
import { headsInMatmul } from "./rewrites/heads_in_matmul.ts";
import { horizontalFusion } from "./rewrites/horizontal_fusion.ts";
import { normInMatmul } from "./rewrites/norm_in_matmul.ts";
import { normPairs } from "./rewrites/norm_pair.ts";
import { normSums } from "./rewrites/norm_sum.ts";
import { normSumInNorm } from "./rewrites/norm_sum_in_norm.ts";
import { normedRouter } from "./rewrites/normed_router.ts";
import { ownHeads } from "./rewrites/own_heads.ts";
import { partialsInMatmul } from "./rewrites/partials_in_matmul.ts";
import { handoffFirst } from "./rewrites/handoff_first.ts";
import { headsWithHandoff } from "./rewrites/handoff_heads.ts";
import { handoffMlp } from "./rewrites/handoff_mlp.ts";
import { attentionRowScales, gateRowScales, rowScales } from "./rewrites/row_scales.ts";
import { splitK } from "./rewrites/split_k.ts";
import { splitsInMatmul } from "./rewrites/splits_in_matmul.ts";
import { valueInAttention } from "./rewrites/value_in_attention.ts";
import { verifyInNorm } from "./rewrites/verify_in_norm.ts";

export const REWRITES: readonly Rewrite[] = [
  // Before split_k: the output of a matmul is one value still.
  normPairs,
  concatInPlace,
  embedInNorm,
  verifyInNorm,
  gatherInNorm,
  combineIntoShared,
  elementwiseInMatmul,
  gateByInMatmul,
  splitK,
  // From here on the output of a matmul may be several partial sums: `value.parts`.
  gateInMatmul,
  headsInMatmul,
  expertSumsInPlace,
  addAfterNorm,
  expertsInNorm,
  addInNorm,
  combineInStream,
  addInMatmul,
  copyInNorm,
  normSums,
  convInDelta,
  gateInAttention,
  branchInNorm,
  normSumInNorm,
  normedRouter,
  chooseInExperts,
  rowScales,
  attentionRowScales,
  gateRowScales,
  partialsInMatmul,
  normInMatmul,
  gatedNormInMatmul,
  f16Rows,
  valueInAttention,
  splitsInMatmul,
  ownHeads,
  // Last, because each merges operations as the rewrites above have left them: several in one dispatch.
  headsWithHandoff,
  handoffMlp,
  handoffFirst,
  horizontalFusion,
];
