import adjust from "./adjust/adjust.wgsl" with { type: "text" };
import countTokens from "./adjust/count_tokens.wgsl" with { type: "text" };
import mask from "./adjust/mask.wgsl" with { type: "text" };
import maskNone from "./adjust/mask_none.wgsl" with { type: "text" };
import penalty from "./adjust/penalty.wgsl" with { type: "text" };
import penaltyNone from "./adjust/penalty_none.wgsl" with { type: "text" };
import attention from "./attention/attention.wgsl" with { type: "text" };
import attentionCombine from "./attention/attention_combine.wgsl" with { type: "text" };
import attentionLanes from "./attention/attention_lanes.wgsl" with { type: "text" };
import attentionRow from "./attention/attention_row.wgsl" with { type: "text" };
import attentionShared from "./attention/shared/attention_shared.wgsl" with { type: "text" };
import attentionSeen from "./attention/shared/seen.wgsl" with { type: "text" };
import attentionSeenNothing from "./attention/shared/seen_nothing.wgsl" with { type: "text" };
import attentionSplitRows from "./attention/split_rows.wgsl" with { type: "text" };
import attentionTiled from "./attention/tiled/attention_tiled.wgsl" with { type: "text" };
import combineRows from "./attention/combine_rows.wgsl" with { type: "text" };
import normRopeStore from "./attention/norm_rope_store.wgsl" with { type: "text" };
import ownNormed from "./attention/own/normed.wgsl" with { type: "text" };
import ownPlain from "./attention/own/plain.wgsl" with { type: "text" };
import ownRelayed from "./attention/own/relayed.wgsl" with { type: "text" };
import ownRelayedPairs from "./attention/own/relayed_pairs.wgsl" with { type: "text" };
import ownRelayedUnread from "./attention/own/relayed_unread.wgsl" with { type: "text" };
import ownStored from "./attention/own/stored.wgsl" with { type: "text" };
import ownStoredPairs from "./attention/own/stored_pairs.wgsl" with { type: "text" };
import ownNothing from "./attention/own/nothing.wgsl" with { type: "text" };
import ownSquares from "./attention/own/squares.wgsl" with { type: "text" };

import noteGroupNothing from "./attention/note/group_nothing.wgsl" with { type: "text" };
import noteGroupScale from "./attention/note/group_scale.wgsl" with { type: "text" };
import noteNothing from "./attention/note/nothing.wgsl" with { type: "text" };
import noteScale from "./attention/note/scale.wgsl" with { type: "text" };
import tiledScores from "./attention/tiled/scores.wgsl" with { type: "text" };
import tiledValues from "./attention/tiled/values.wgsl" with { type: "text" };
import attentionPaged from "./attention/paged.wgsl" with { type: "text" };
import attentionSplit from "./attention/split.wgsl" with { type: "text" };
import visible from "./attention/visible.wgsl" with { type: "text" };
import attentionUnits from "./attention_units/attention_units.wgsl" with { type: "text" };
import chunkUnits from "./attention_units/chunk/chunk_units.wgsl" with { type: "text" };
import halveCells from "./attention_units/chunk/halve_cells.wgsl" with { type: "text" };
import chunkSegment from "./attention_units/chunk/segment.wgsl" with { type: "text" };
import chunkSegmentsKept from "./attention_units/chunk/segments_kept.wgsl" with { type: "text" };
import chunkSegmentsMerged from "./attention_units/chunk/segments_merged.wgsl" with {
  type: "text",
};
import chunkScores from "./attention_units/chunk/scores.wgsl" with { type: "text" };
import chunkValues from "./attention_units/chunk/values.wgsl" with { type: "text" };
import chunkWeights from "./attention_units/chunk/weights.wgsl" with { type: "text" };
import unitsRowScale from "./attention_units/row_scale.wgsl" with { type: "text" };
import unitsBring from "./attention_units/bring.wgsl" with { type: "text" };
import combineUnits from "./attention_units/combine_units.wgsl" with { type: "text" };
import unitsHalves from "./attention_units/halves.wgsl" with { type: "text" };
import unitsPower from "./attention_units/power.wgsl" with { type: "text" };
import unitsPutSums from "./attention_units/put_sums.wgsl" with { type: "text" };
import unitsScores from "./attention_units/scores.wgsl" with { type: "text" };
import unitsSoftmax from "./attention_units/softmax.wgsl" with { type: "text" };
import unitsSumsKept from "./attention_units/sums_kept.wgsl" with { type: "text" };
import unitsSumsOut from "./attention_units/sums_out.wgsl" with { type: "text" };
import unitsValues from "./attention_units/values.wgsl" with { type: "text" };
import unitsWeights from "./attention_units/weights.wgsl" with { type: "text" };
import choose from "./choose/choose.wgsl" with { type: "text" };
import draftChoose from "./choose/draft_choose.wgsl" with { type: "text" };
import draftNextNone from "./choose/draft_next_none.wgsl" with { type: "text" };
import draftNextRow from "./choose/draft_next_row.wgsl" with { type: "text" };
import gather from "./choose/gather.wgsl" with { type: "text" };
import gathered from "./choose/gathered.wgsl" with { type: "text" };
import gatheredLayout from "./choose/gathered_layout.wgsl" with { type: "text" };
import gatheredNone from "./choose/gathered_none.wgsl" with { type: "text" };
import kept from "./choose/kept.wgsl" with { type: "text" };
import keptMass from "./choose/kept_mass.wgsl" with { type: "text" };
import keptRowChain from "./choose/kept_row_chain.wgsl" with { type: "text" };
import keptRowTree from "./choose/kept_row_tree.wgsl" with { type: "text" };
import logprobs from "./choose/logprobs.wgsl" with { type: "text" };
import parentChain from "./choose/parent_chain.wgsl" with { type: "text" };
import parentTree from "./choose/parent_tree.wgsl" with { type: "text" };
import relax from "./choose/relax.wgsl" with { type: "text" };
import allocate from "./confidence/allocate.wgsl" with { type: "text" };
import draftConfidence from "./confidence/draft_confidence.wgsl" with { type: "text" };
import draftConfidenceNone from "./confidence/draft_confidence_none.wgsl" with { type: "text" };
import tellConfidence from "./confidence/tell_confidence.wgsl" with { type: "text" };
import tellNone from "./confidence/tell_none.wgsl" with { type: "text" };
import choice from "./router/choice.wgsl" with { type: "text" };
import combineExperts from "./experts/combine_experts.wgsl" with { type: "text" };
import expertJobsAlone from "./experts/expert_jobs_alone.wgsl" with { type: "text" };
import expertJobsChosen from "./experts/few/expert_jobs_chosen.wgsl" with { type: "text" };
import expertJobsPicked from "./experts/few/expert_jobs_picked.wgsl" with { type: "text" };
import rowChoice from "./experts/few/row_choice.wgsl" with { type: "text" };
import expertJobsFound from "./experts/expert_jobs_found.wgsl" with { type: "text" };
import expertJobsTiled from "./experts/expert_jobs_tiled.wgsl" with { type: "text" };
import expertMatmul from "./experts/expert_matmul.wgsl" with { type: "text" };
import expertEnding from "./experts/expert_ending.wgsl" with { type: "text" };
import expertPrefetch from "./experts/expert_prefetch.wgsl" with { type: "text" };
import expertRows from "./experts/expert_rows.wgsl" with { type: "text" };
import expertStaged from "./experts/expert_staged.wgsl" with { type: "text" };
import expertSums from "./experts/few/expert_sums.wgsl" with { type: "text" };
import expertSumsHeld from "./experts/few/expert_sums_held.wgsl" with { type: "text" };
import expertPlaceRows from "./experts/place/rows.wgsl" with { type: "text" };
import expertPlaceTiled from "./experts/place/tiled.wgsl" with { type: "text" };
import expertTensor from "./experts/expert_tensor.wgsl" with { type: "text" };
import expertTile from "./experts/expert_tile.wgsl" with { type: "text" };
import jobLists from "./experts/job_lists.wgsl" with { type: "text" };
import tileWeights from "./experts/tile_weights.wgsl" with { type: "text" };
import route from "./router/route.wgsl" with { type: "text" };
import rowLogits from "./router/row_logits.wgsl" with { type: "text" };
import rowTotal from "./router/row_total.wgsl" with { type: "text" };
import routeSigmoid from "./router/route_sigmoid.wgsl" with { type: "text" };
import routeSoftmax from "./router/route_softmax.wgsl" with { type: "text" };
import argmax from "./fragments/argmax.wgsl" with { type: "text" };
import draftRow from "./fragments/draft_row.wgsl" with { type: "text" };
import drafts from "./fragments/drafts.wgsl" with { type: "text" };
import kvLoadBf16 from "./kv/load_bf16.wgsl" with { type: "text" };
import kvLoadF16 from "./kv/load_f16.wgsl" with { type: "text" };
import kvLoadF32 from "./kv/load_f32.wgsl" with { type: "text" };
import kvHalfF32 from "./kv/half_f32.wgsl" with { type: "text" };
import kvHalfPacked from "./kv/half_packed.wgsl" with { type: "text" };
import kvPackBf16 from "./kv/pack_bf16.wgsl" with { type: "text" };
import kvPackF16 from "./kv/pack_f16.wgsl" with { type: "text" };
import kvPlaceHeads from "./kv/place_heads.wgsl" with { type: "text" };
import kvPutF32 from "./kv/put_f32.wgsl" with { type: "text" };
import kvPutWords from "./kv/put_words.wgsl" with { type: "text" };
import kvStoreF32 from "./kv/store_f32.wgsl" with { type: "text" };
import kvStoreWords from "./kv/store_words.wgsl" with { type: "text" };
import kvVec8 from "./kv/vec8.wgsl" with { type: "text" };
import noise from "./fragments/noise.wgsl" with { type: "text" };
import normScale from "./attention/norm_scale.wgsl" with { type: "text" };
import placeHead from "./fragments/place_head.wgsl" with { type: "text" };
import readWords from "./fragments/read_words.wgsl" with { type: "text" };
import rows from "./fragments/rows.wgsl" with { type: "text" };
import softCap from "./fragments/soft_cap.wgsl" with { type: "text" };
import splitKSums from "./fragments/split_k_sums.wgsl" with { type: "text" };
import turned from "./attention/turned.wgsl" with { type: "text" };
import vec8 from "./fragments/vec8.wgsl" with { type: "text" };
import workgroupArgmax from "./fragments/workgroup_argmax.wgsl" with { type: "text" };
import workgroupSum from "./fragments/workgroup_sum.wgsl" with { type: "text" };
import latentAttention from "./latent/latent_attention.wgsl" with { type: "text" };
import latentCells from "./latent/latent_cells.wgsl" with { type: "text" };
import latentChunk from "./latent/latent_chunk.wgsl" with { type: "text" };
import latentCombine from "./latent/latent_combine.wgsl" with { type: "text" };
import latentFold from "./latent/latent_fold.wgsl" with { type: "text" };
import latentLanes from "./latent/latent_lanes.wgsl" with { type: "text" };
import latentFewLong from "./latent/few/long.wgsl" with { type: "text" };
import latentFewLongValues from "./latent/few/long_values.wgsl" with { type: "text" };
import latentManyAbsorb from "./latent/many/absorb.wgsl" with { type: "text" };
import latentManyFourBf16 from "./latent/many/four_bf16.wgsl" with { type: "text" };
import latentManyFourF16 from "./latent/many/four_f16.wgsl" with { type: "text" };
import latentManyFourF32 from "./latent/many/four_f32.wgsl" with { type: "text" };
import latentManySum from "./latent/many/sum.wgsl" with { type: "text" };
import latentManyValue from "./latent/many/value.wgsl" with { type: "text" };
import latentManyWeigh from "./latent/many/weigh.wgsl" with { type: "text" };
import latentPrepare from "./latent/latent_prepare.wgsl" with { type: "text" };
import latentRope from "./latent/latent_rope.wgsl" with { type: "text" };
import latentRuns from "./latent/latent_runs.wgsl" with { type: "text" };
import latentRunsChunks from "./latent/latent_runs_chunks.wgsl" with { type: "text" };
import latentRunsSegments from "./latent/latent_runs_segments.wgsl" with { type: "text" };
import latentScores from "./latent/latent_scores.wgsl" with { type: "text" };
import latentValue from "./latent/latent_value.wgsl" with { type: "text" };
import latentValues from "./latent/latent_values.wgsl" with { type: "text" };
import latentValueMixed from "./latent/latent_value_mixed.wgsl" with { type: "text" };
import latentValueRuns from "./latent/latent_value_runs.wgsl" with { type: "text" };
import common from "./matmul/common.wgsl" with { type: "text" };
import commonRows from "./matmul/common_rows.wgsl" with { type: "text" };
import dotAdd8 from "./matmul/dot/add8.wgsl" with { type: "text" };
import dotFloats from "./matmul/dot/floats.wgsl" with { type: "text" };
import dotFloatsX from "./matmul/dot/floats_x.wgsl" with { type: "text" };
import dotPacked from "./matmul/dot/packed.wgsl" with { type: "text" };
import dotPackedX from "./matmul/dot/packed_x.wgsl" with { type: "text" };
import dotRounded from "./matmul/dot/rounded.wgsl" with { type: "text" };
import dotVec8 from "./matmul/dot/vec8.wgsl" with { type: "text" };
import dotWhole from "./matmul/dot/whole.wgsl" with { type: "text" };
import dotWholeX from "./matmul/dot/whole_x.wgsl" with { type: "text" };
import endingAddLanes from "./matmul/ending/add_lanes.wgsl" with { type: "text" };
import endingAddPairs from "./matmul/ending/add_pairs.wgsl" with { type: "text" };
import endingLanes from "./matmul/ending/lanes.wgsl" with { type: "text" };
import endingOneLane from "./matmul/ending/one_lane.wgsl" with { type: "text" };
import endingOneLaneSums from "./matmul/ending/one_lane_sums.wgsl" with { type: "text" };
import endingPair from "./matmul/ending/pair.wgsl" with { type: "text" };
import epilogueAdd from "./matmul/epilogue/add.wgsl" with { type: "text" };
import epilogueCap from "./matmul/epilogue/cap.wgsl" with { type: "text" };
import epilogueGeglu from "./matmul/epilogue/geglu.wgsl" with { type: "text" };
import epiloguePartial from "./matmul/epilogue/partial.wgsl" with { type: "text" };
import epilogueQkv from "./matmul/epilogue/qkv.wgsl" with { type: "text" };
import epilogueQkvBias from "./matmul/epilogue/qkv_bias.wgsl" with { type: "text" };
import epilogueQkvPlain from "./matmul/epilogue/qkv_plain.wgsl" with { type: "text" };
import epilogueStore from "./matmul/epilogue/store.wgsl" with { type: "text" };
import gateGelu from "./matmul/epilogue/gate_gelu.wgsl" with { type: "text" };
import gateSilu from "./matmul/epilogue/gate_silu.wgsl" with { type: "text" };
import gatedNoted from "./matmul/epilogue/gated_noted.wgsl" with { type: "text" };
import epilogueSwiglu from "./matmul/epilogue/swiglu.wgsl" with { type: "text" };
import holdCombined from "./matmul/hold/combined.wgsl" with { type: "text" };
import holdCombinedHalves from "./matmul/hold/combined_halves.wgsl" with { type: "text" };
import holdCombinedHeld from "./matmul/hold/combined_held.wgsl" with { type: "text" };
import holdNormed from "./matmul/hold/normed.wgsl" with { type: "text" };
import holdNothing from "./matmul/hold/nothing.wgsl" with { type: "text" };
import holdNormedHeld from "./matmul/hold/normed_held.wgsl" with { type: "text" };
import holdRows from "./matmul/hold/rows.wgsl" with { type: "text" };
import holdRowsHeld from "./matmul/hold/rows_held.wgsl" with { type: "text" };
import loadFloats from "./matmul/load_floats.wgsl" with { type: "text" };
import loadRounded from "./matmul/load_rounded.wgsl" with { type: "text" };
import partLoadFloats from "./matmul/part/load_floats.wgsl" with { type: "text" };
import partLoadRounded from "./matmul/part/load_rounded.wgsl" with { type: "text" };
import partPackedAll from "./matmul/part/packed_all.wgsl" with { type: "text" };
import partPackedFew from "./matmul/part/packed_few.wgsl" with { type: "text" };
import partWithin from "./matmul/part/within.wgsl" with { type: "text" };
import matmul from "./matmul/matmul.wgsl" with { type: "text" };
import matmulPrefetch from "./matmul/matmul_prefetch.wgsl" with { type: "text" };
import matmulResident from "./matmul/matmul_resident.wgsl" with { type: "text" };
import matmulStaged from "./matmul/matmul_staged.wgsl" with { type: "text" };
import out from "./matmul/out.wgsl" with { type: "text" };
import outPartial from "./matmul/out_partial.wgsl" with { type: "text" };
import prologue from "./matmul/prologue.wgsl" with { type: "text" };
import relayCounts from "./matmul/relay/counts.wgsl" with { type: "text" };
import relayFloatWords from "./matmul/relay/float_words.wgsl" with { type: "text" };
import relayGated from "./matmul/relay/gated.wgsl" with { type: "text" };
import relayOut from "./matmul/relay/out.wgsl" with { type: "text" };
import relayRead from "./matmul/relay/read.wgsl" with { type: "text" };
import relayReadHeld from "./matmul/relay/read_held.wgsl" with { type: "text" };
import relayRoundedWords from "./matmul/relay/rounded_words.wgsl" with { type: "text" };
import relayStored from "./matmul/relay/stored.wgsl" with { type: "text" };
import relaySums from "./matmul/relay/sums.wgsl" with { type: "text" };
import prologueRows from "./matmul/prologue_rows.wgsl" with { type: "text" };
import embed from "./norm/embed.wgsl" with { type: "text" };
import normFromBranch from "./norm/norm_from_branch.wgsl" with { type: "text" };
import normFromExperts from "./norm/norm_from_experts.wgsl" with { type: "text" };
import normFromIndex from "./norm/norm_from_index.wgsl" with { type: "text" };
import normFromRows from "./norm/norm_from_rows.wgsl" with { type: "text" };
import normFromSums from "./norm/norm_from_sums.wgsl" with { type: "text" };
import normFromTokens from "./norm/norm_from_tokens.wgsl" with { type: "text" };
import normKeepInput from "./norm/norm_keep_input.wgsl" with { type: "text" };
import normKeepNothing from "./norm/norm_keep_nothing.wgsl" with { type: "text" };
import normKeepOutput from "./norm/norm_keep_output.wgsl" with { type: "text" };
import normKeepSlot from "./norm/norm_keep_slot.wgsl" with { type: "text" };
import normNoteNothing from "./norm/norm_note_nothing.wgsl" with { type: "text" };
import normNoteScale from "./norm/norm_note_scale.wgsl" with { type: "text" };
import normPair from "./norm/norm_pair.wgsl" with { type: "text" };
import normPutAdd from "./norm/norm_put_add.wgsl" with { type: "text" };
import normPutPair from "./norm/norm_put_pair.wgsl" with { type: "text" };
import normPutStore from "./norm/norm_put_store.wgsl" with { type: "text" };
import rmsNorm from "./norm/rms_norm.wgsl" with { type: "text" };
import tokensStored from "./norm/tokens/stored.wgsl" with { type: "text" };
import tokensVerified from "./norm/tokens/verified.wgsl" with { type: "text" };
import placesPacked from "./packed/places_packed.wgsl" with { type: "text" };
import placesUniform from "./packed/places_uniform.wgsl" with { type: "text" };
import verifyPacked from "./packed/verify_packed.wgsl" with { type: "text" };
import partialArgmax from "./partial/partial_argmax.wgsl" with { type: "text" };
import partialSoftmax from "./partial/partial_softmax.wgsl" with { type: "text" };
import slicePartials from "./partial/slice_partials.wgsl" with { type: "text" };
import workgroupPartial from "./partial/workgroup_partial.wgsl" with { type: "text" };
import accept from "./round/accept.wgsl" with { type: "text" };
import acceptChain from "./round/accept_chain.wgsl" with { type: "text" };
import acceptCommit from "./round/accept_commit.wgsl" with { type: "text" };
import acceptPrompt from "./round/accept_prompt.wgsl" with { type: "text" };
import acceptSimulated from "./round/accept_simulated.wgsl" with { type: "text" };
import acceptTree from "./round/accept_tree.wgsl" with { type: "text" };
import choicesGreedy from "./round/choices/greedy.wgsl" with { type: "text" };
import choicesStored from "./round/choices/stored.wgsl" with { type: "text" };
import copyRows from "./round/rows/copy_rows.wgsl" with { type: "text" };
import draftEnds from "./round/draft_ends.wgsl" with { type: "text" };
import draftRows from "./round/draft_rows.wgsl" with { type: "text" };
import fillRows from "./round/rows/fill_rows.wgsl" with { type: "text" };
import gatherRows from "./round/rows/gather_rows.wgsl" with { type: "text" };
import loadFeatures from "./round/load_features.wgsl" with { type: "text" };
import moveCells from "./round/move_cells.wgsl" with { type: "text" };
import scatterRows from "./round/rows/scatter_rows.wgsl" with { type: "text" };
import storeFeatures from "./round/store_features.wgsl" with { type: "text" };
import verifyRow from "./round/verify_row.wgsl" with { type: "text" };
import verifyRows from "./round/verify_rows.wgsl" with { type: "text" };
import verifyTree from "./round/verify_tree.wgsl" with { type: "text" };
import law from "./standalone/law.wgsl" with { type: "text" };
import ownRows from "./standalone/own_rows.wgsl" with { type: "text" };
import ownRowsAll from "./standalone/own_rows_all.wgsl" with { type: "text" };
import ownRowsLast from "./standalone/own_rows_last.wgsl" with { type: "text" };
import putDrafts from "./standalone/put_drafts.wgsl" with { type: "text" };
import reject from "./standalone/reject.wgsl" with { type: "text" };
import rejectBlock from "./standalone/reject_block.wgsl" with { type: "text" };
import roundSlots from "./standalone/round_slots.wgsl" with { type: "text" };
import twoLaws from "./standalone/two_laws.wgsl" with { type: "text" };
import tensorCommon from "./tensor/common.wgsl" with { type: "text" };
import tensorCut from "./tensor/cut.wgsl" with { type: "text" };
import toF16 from "./tensor/to_f16.wgsl" with { type: "text" };
import groupScales from "./tensor/scales/group_scales.wgsl" with { type: "text" };
import halveWeights from "./tensor/scales/halve_weights.wgsl" with { type: "text" };
import unitsLoadFloats from "./tensor/load/floats.wgsl" with { type: "text" };
import unitsLoadIntegers from "./tensor/load/integers.wgsl" with { type: "text" };
import unitsLoadLanes from "./tensor/load/lanes.wgsl" with { type: "text" };
import unitsLoadQ4 from "./tensor/load/q4.wgsl" with { type: "text" };
import unitsLoadQ8 from "./tensor/load/q8.wgsl" with { type: "text" };
import unitsLoadWhole from "./tensor/load/whole.wgsl" with { type: "text" };
import matmulTensor from "./tensor/matmul_tensor.wgsl" with { type: "text" };
import lowerNothing from "./tensor/row/lower_nothing.wgsl" with { type: "text" };
import lowerScales from "./tensor/row/lower_scales.wgsl" with { type: "text" };
import matmulTensorFew from "./tensor/matmul_tensor_few.wgsl" with { type: "text" };
import outNoted from "./tensor/out_noted.wgsl" with { type: "text" };
import lanesNoted from "./tensor/tile/lanes_noted.wgsl" with { type: "text" };
import lanesStore from "./tensor/tile/lanes_store.wgsl" with { type: "text" };
import outNotedTile from "./tensor/tile/out_noted.wgsl" with { type: "text" };
import outputsTile from "./tensor/tile/outputs.wgsl" with { type: "text" };
import outStore from "./tensor/out_store.wgsl" with { type: "text" };
import outStoreTile from "./tensor/tile/out_store.wgsl" with { type: "text" };
import rowOfChunk from "./tensor/row_of_chunk.wgsl" with { type: "text" };
import rowScales from "./tensor/scales/row_scales.wgsl" with { type: "text" };
import scaleOf from "./tensor/scale_of.wgsl" with { type: "text" };
import weightScales from "./tensor/scales/weight_scales.wgsl" with { type: "text" };
import partialTop from "./tree/partial_top.wgsl" with { type: "text" };
import pool from "./tree/pool.wgsl" with { type: "text" };
import topOfRow from "./tree/top_of_row.wgsl" with { type: "text" };
import topOfSlot from "./tree/top_of_slot.wgsl" with { type: "text" };
import topOfSlotConfident from "./tree/top_of_slot_confident.wgsl" with { type: "text" };
import topTokens from "./tree/top_tokens.wgsl" with { type: "text" };
import treeLevel from "./tree/tree_level.wgsl" with { type: "text" };
import treeLevelFirst from "./tree/tree_level_first.wgsl" with { type: "text" };
import treeLevelNext from "./tree/tree_level_next.wgsl" with { type: "text" };
import treeSelect from "./tree/tree_select.wgsl" with { type: "text" };
import fillRandom from "./weights/fill_random.wgsl" with { type: "text" };
import quantize from "./weights/quantize.wgsl" with { type: "text" };
import quantizeQ4 from "./weights/quantize_q4.wgsl" with { type: "text" };
import quantizeQ8 from "./weights/quantize_q8.wgsl" with { type: "text" };
import weightsBf16 from "./weights/weights_bf16.wgsl" with { type: "text" };
import weightsBytes from "./weights/weights_bytes.wgsl" with { type: "text" };
import weightsF16 from "./weights/weights_f16.wgsl" with { type: "text" };
import weightsF32 from "./weights/weights_f32.wgsl" with { type: "text" };
import weightsF8 from "./weights/weights_f8.wgsl" with { type: "text" };
import weightsI8 from "./weights/weights_i8.wgsl" with { type: "text" };
import weightsIntegers from "./weights/weights_integers.wgsl" with { type: "text" };
import weightsQ4 from "./weights/weights_q4.wgsl" with { type: "text" };
import weightsQ8 from "./weights/weights_q8.wgsl" with { type: "text" };
import weightsU4 from "./weights/weights_u4.wgsl" with { type: "text" };

/** Every WGSL file of this folder, by its path without ".wgsl": what `//use` lines name. */
export const TEXTS: Readonly<Record<string, string>> = {
  "adjust/adjust": adjust,
  "adjust/count_tokens": countTokens,
  "adjust/mask": mask,
  "adjust/mask_none": maskNone,
  "adjust/penalty": penalty,
  "adjust/penalty_none": penaltyNone,
  "attention/attention": attention,
  "attention/attention_combine": attentionCombine,
  "attention/attention_lanes": attentionLanes,
  "attention/attention_row": attentionRow,
  "attention/shared/attention_shared": attentionShared,
  "attention/shared/seen": attentionSeen,
  "attention/shared/seen_nothing": attentionSeenNothing,
  "attention/split_rows": attentionSplitRows,
  "attention/tiled/attention_tiled": attentionTiled,
  "attention/combine_rows": combineRows,
  "attention/norm_rope_store": normRopeStore,
  "attention/own/normed": ownNormed,
  "attention/own/plain": ownPlain,
  "attention/own/relayed": ownRelayed,
  "attention/own/relayed_pairs": ownRelayedPairs,
  "attention/own/relayed_unread": ownRelayedUnread,
  "attention/own/stored": ownStored,
  "attention/own/stored_pairs": ownStoredPairs,
  "attention/own/nothing": ownNothing,
  "attention/own/squares": ownSquares,
  "attention/note/group_nothing": noteGroupNothing,
  "attention/note/group_scale": noteGroupScale,
  "attention/note/nothing": noteNothing,
  "attention/note/scale": noteScale,
  "attention/tiled/scores": tiledScores,
  "attention/tiled/values": tiledValues,
  "attention/paged": attentionPaged,
  "attention/split": attentionSplit,
  "attention/visible": visible,
  "attention_units/attention_units": attentionUnits,
  "attention_units/chunk/chunk_units": chunkUnits,
  "attention_units/chunk/halve_cells": halveCells,
  "attention_units/chunk/scores": chunkScores,
  "attention_units/chunk/segment": chunkSegment,
  "attention_units/chunk/segments_kept": chunkSegmentsKept,
  "attention_units/chunk/segments_merged": chunkSegmentsMerged,
  "attention_units/chunk/values": chunkValues,
  "attention_units/chunk/weights": chunkWeights,
  "attention_units/row_scale": unitsRowScale,
  "attention_units/bring": unitsBring,
  "attention_units/combine_units": combineUnits,
  "attention_units/halves": unitsHalves,
  "attention_units/power": unitsPower,
  "attention_units/put_sums": unitsPutSums,
  "attention_units/scores": unitsScores,
  "attention_units/softmax": unitsSoftmax,
  "attention_units/sums_kept": unitsSumsKept,
  "attention_units/sums_out": unitsSumsOut,
  "attention_units/values": unitsValues,
  "attention_units/weights": unitsWeights,
  "choose/choose": choose,
  "choose/draft_choose": draftChoose,
  "choose/draft_next_none": draftNextNone,
  "choose/draft_next_row": draftNextRow,
  "choose/gather": gather,
  "choose/gathered": gathered,
  "choose/gathered_layout": gatheredLayout,
  "choose/gathered_none": gatheredNone,
  "choose/kept": kept,
  "choose/kept_mass": keptMass,
  "choose/kept_row_chain": keptRowChain,
  "choose/kept_row_tree": keptRowTree,
  "choose/logprobs": logprobs,
  "choose/parent_chain": parentChain,
  "choose/parent_tree": parentTree,
  "choose/relax": relax,
  "confidence/allocate": allocate,
  "confidence/draft_confidence": draftConfidence,
  "confidence/draft_confidence_none": draftConfidenceNone,
  "confidence/tell_confidence": tellConfidence,
  "confidence/tell_none": tellNone,
  "router/choice": choice,
  "experts/combine_experts": combineExperts,
  "experts/expert_jobs_alone": expertJobsAlone,
  "experts/few/expert_jobs_chosen": expertJobsChosen,
  "experts/few/expert_jobs_picked": expertJobsPicked,
  "experts/few/row_choice": rowChoice,
  "experts/expert_jobs_found": expertJobsFound,
  "experts/expert_jobs_tiled": expertJobsTiled,
  "experts/expert_matmul": expertMatmul,
  "experts/expert_ending": expertEnding,
  "experts/expert_prefetch": expertPrefetch,
  "experts/expert_rows": expertRows,
  "experts/expert_staged": expertStaged,
  "experts/few/expert_sums": expertSums,
  "experts/few/expert_sums_held": expertSumsHeld,
  "experts/place/rows": expertPlaceRows,
  "experts/place/tiled": expertPlaceTiled,
  "experts/expert_tensor": expertTensor,
  "experts/expert_tile": expertTile,
  "experts/job_lists": jobLists,
  "experts/tile_weights": tileWeights,
  "router/route": route,
  "router/row_logits": rowLogits,
  "router/row_total": rowTotal,
  "router/route_sigmoid": routeSigmoid,
  "router/route_softmax": routeSoftmax,
  "fragments/argmax": argmax,
  "fragments/draft_row": draftRow,
  "fragments/drafts": drafts,
  "kv/load_bf16": kvLoadBf16,
  "kv/load_f16": kvLoadF16,
  "kv/load_f32": kvLoadF32,
  "kv/half_f32": kvHalfF32,
  "kv/half_packed": kvHalfPacked,
  "kv/pack_bf16": kvPackBf16,
  "kv/pack_f16": kvPackF16,
  "kv/place_heads": kvPlaceHeads,
  "kv/put_f32": kvPutF32,
  "kv/put_words": kvPutWords,
  "kv/store_f32": kvStoreF32,
  "kv/store_words": kvStoreWords,
  "kv/vec8": kvVec8,
  "fragments/noise": noise,
  "attention/norm_scale": normScale,
  "fragments/place_head": placeHead,
  "fragments/read_words": readWords,
  "fragments/rows": rows,
  "fragments/soft_cap": softCap,
  "fragments/split_k_sums": splitKSums,
  "attention/turned": turned,
  "fragments/vec8": vec8,
  "fragments/workgroup_argmax": workgroupArgmax,
  "fragments/workgroup_sum": workgroupSum,
  "latent/latent_attention": latentAttention,
  "latent/latent_cells": latentCells,
  "latent/latent_chunk": latentChunk,
  "latent/latent_combine": latentCombine,
  "latent/latent_fold": latentFold,
  "latent/latent_lanes": latentLanes,
  "latent/few/long": latentFewLong,
  "latent/few/long_values": latentFewLongValues,
  "latent/latent_prepare": latentPrepare,
  "latent/latent_rope": latentRope,
  "latent/latent_runs": latentRuns,
  "latent/latent_runs_chunks": latentRunsChunks,
  "latent/latent_runs_segments": latentRunsSegments,
  "latent/latent_scores": latentScores,
  "latent/latent_value": latentValue,
  "latent/latent_values": latentValues,
  "latent/latent_value_mixed": latentValueMixed,
  "latent/latent_value_runs": latentValueRuns,
  "latent/many/absorb": latentManyAbsorb,
  "latent/many/four_bf16": latentManyFourBf16,
  "latent/many/four_f16": latentManyFourF16,
  "latent/many/four_f32": latentManyFourF32,
  "latent/many/sum": latentManySum,
  "latent/many/value": latentManyValue,
  "latent/many/weigh": latentManyWeigh,
  "matmul/common": common,
  "matmul/common_rows": commonRows,
  "matmul/dot/add8": dotAdd8,
  "matmul/dot/floats": dotFloats,
  "matmul/dot/floats_x": dotFloatsX,
  "matmul/dot/packed": dotPacked,
  "matmul/dot/packed_x": dotPackedX,
  "matmul/dot/rounded": dotRounded,
  "matmul/dot/vec8": dotVec8,
  "matmul/dot/whole": dotWhole,
  "matmul/dot/whole_x": dotWholeX,
  "matmul/ending/add_lanes": endingAddLanes,
  "matmul/ending/add_pairs": endingAddPairs,
  "matmul/ending/lanes": endingLanes,
  "matmul/ending/one_lane": endingOneLane,
  "matmul/ending/one_lane_sums": endingOneLaneSums,
  "matmul/ending/pair": endingPair,
  "matmul/epilogue/add": epilogueAdd,
  "matmul/epilogue/cap": epilogueCap,
  "matmul/epilogue/geglu": epilogueGeglu,
  "matmul/epilogue/partial": epiloguePartial,
  "matmul/epilogue/qkv": epilogueQkv,
  "matmul/epilogue/qkv_bias": epilogueQkvBias,
  "matmul/epilogue/qkv_plain": epilogueQkvPlain,
  "matmul/epilogue/store": epilogueStore,
  "matmul/epilogue/gate_gelu": gateGelu,
  "matmul/epilogue/gate_silu": gateSilu,
  "matmul/epilogue/gated_noted": gatedNoted,
  "matmul/epilogue/swiglu": epilogueSwiglu,
  "matmul/hold/combined": holdCombined,
  "matmul/hold/combined_halves": holdCombinedHalves,
  "matmul/hold/combined_held": holdCombinedHeld,
  "matmul/hold/normed": holdNormed,
  "matmul/hold/nothing": holdNothing,
  "matmul/hold/normed_held": holdNormedHeld,
  "matmul/hold/rows": holdRows,
  "matmul/hold/rows_held": holdRowsHeld,
  "matmul/load_floats": loadFloats,
  "matmul/load_rounded": loadRounded,
  "matmul/part/load_floats": partLoadFloats,
  "matmul/part/load_rounded": partLoadRounded,
  "matmul/part/packed_all": partPackedAll,
  "matmul/part/packed_few": partPackedFew,
  "matmul/part/within": partWithin,
  "matmul/matmul": matmul,
  "matmul/matmul_prefetch": matmulPrefetch,
  "matmul/matmul_resident": matmulResident,
  "matmul/matmul_staged": matmulStaged,
  "matmul/out": out,
  "matmul/out_partial": outPartial,
  "matmul/prologue": prologue,
  "matmul/relay/counts": relayCounts,
  "matmul/relay/float_words": relayFloatWords,
  "matmul/relay/gated": relayGated,
  "matmul/relay/out": relayOut,
  "matmul/relay/read": relayRead,
  "matmul/relay/read_held": relayReadHeld,
  "matmul/relay/rounded_words": relayRoundedWords,
  "matmul/relay/stored": relayStored,
  "matmul/relay/sums": relaySums,
  "matmul/prologue_rows": prologueRows,
  "norm/embed": embed,
  "norm/norm_from_branch": normFromBranch,
  "norm/norm_from_experts": normFromExperts,
  "norm/norm_from_index": normFromIndex,
  "norm/norm_from_rows": normFromRows,
  "norm/norm_from_sums": normFromSums,
  "norm/norm_from_tokens": normFromTokens,
  "norm/norm_keep_input": normKeepInput,
  "norm/norm_keep_nothing": normKeepNothing,
  "norm/norm_keep_output": normKeepOutput,
  "norm/norm_keep_slot": normKeepSlot,
  "norm/norm_note_nothing": normNoteNothing,
  "norm/norm_note_scale": normNoteScale,
  "norm/norm_pair": normPair,
  "norm/norm_put_add": normPutAdd,
  "norm/norm_put_pair": normPutPair,
  "norm/norm_put_store": normPutStore,
  "norm/rms_norm": rmsNorm,
  "norm/tokens/stored": tokensStored,
  "norm/tokens/verified": tokensVerified,
  "packed/places_packed": placesPacked,
  "packed/places_uniform": placesUniform,
  "packed/verify_packed": verifyPacked,
  "partial/partial_argmax": partialArgmax,
  "partial/partial_softmax": partialSoftmax,
  "partial/slice_partials": slicePartials,
  "partial/workgroup_partial": workgroupPartial,
  "round/accept": accept,
  "round/accept_chain": acceptChain,
  "round/accept_commit": acceptCommit,
  "round/accept_prompt": acceptPrompt,
  "round/accept_simulated": acceptSimulated,
  "round/accept_tree": acceptTree,
  "round/choices/greedy": choicesGreedy,
  "round/choices/stored": choicesStored,
  "round/rows/copy_rows": copyRows,
  "round/draft_ends": draftEnds,
  "round/draft_rows": draftRows,
  "round/rows/fill_rows": fillRows,
  "round/rows/gather_rows": gatherRows,
  "round/load_features": loadFeatures,
  "round/move_cells": moveCells,
  "round/rows/scatter_rows": scatterRows,
  "round/store_features": storeFeatures,
  "round/verify_row": verifyRow,
  "round/verify_rows": verifyRows,
  "round/verify_tree": verifyTree,
  "standalone/law": law,
  "standalone/own_rows": ownRows,
  "standalone/own_rows_all": ownRowsAll,
  "standalone/own_rows_last": ownRowsLast,
  "standalone/put_drafts": putDrafts,
  "standalone/reject": reject,
  "standalone/reject_block": rejectBlock,
  "standalone/round_slots": roundSlots,
  "standalone/two_laws": twoLaws,
  "tensor/common": tensorCommon,
  "tensor/cut": tensorCut,
  "tensor/to_f16": toF16,
  "tensor/scales/group_scales": groupScales,
  "tensor/scales/halve_weights": halveWeights,
  "tensor/load/floats": unitsLoadFloats,
  "tensor/load/integers": unitsLoadIntegers,
  "tensor/load/lanes": unitsLoadLanes,
  "tensor/load/q4": unitsLoadQ4,
  "tensor/load/q8": unitsLoadQ8,
  "tensor/load/whole": unitsLoadWhole,
  "tensor/matmul_tensor": matmulTensor,
  "tensor/row/lower_nothing": lowerNothing,
  "tensor/row/lower_scales": lowerScales,
  "tensor/matmul_tensor_few": matmulTensorFew,
  "tensor/out_noted": outNoted,
  "tensor/tile/out_noted": outNotedTile,
  "tensor/tile/lanes_noted": lanesNoted,
  "tensor/tile/lanes_store": lanesStore,
  "tensor/tile/outputs": outputsTile,
  "tensor/out_store": outStore,
  "tensor/tile/out_store": outStoreTile,
  "tensor/row_of_chunk": rowOfChunk,
  "tensor/scales/row_scales": rowScales,
  "tensor/scale_of": scaleOf,
  "tensor/scales/weight_scales": weightScales,
  "tree/partial_top": partialTop,
  "tree/pool": pool,
  "tree/top_of_row": topOfRow,
  "tree/top_of_slot": topOfSlot,
  "tree/top_of_slot_confident": topOfSlotConfident,
  "tree/top_tokens": topTokens,
  "tree/tree_level": treeLevel,
  "tree/tree_level_first": treeLevelFirst,
  "tree/tree_level_next": treeLevelNext,
  "tree/tree_select": treeSelect,
  "weights/fill_random": fillRandom,
  "weights/quantize": quantize,
  "weights/quantize_q4": quantizeQ4,
  "weights/quantize_q8": quantizeQ8,
  "weights/weights_bf16": weightsBf16,
  "weights/weights_bytes": weightsBytes,
  "weights/weights_f16": weightsF16,
  "weights/weights_f32": weightsF32,
  "weights/weights_f8": weightsF8,
  "weights/weights_i8": weightsI8,
  "weights/weights_integers": weightsIntegers,
  "weights/weights_q4": weightsQ4,
  "weights/weights_q8": weightsQ8,
  "weights/weights_u4": weightsU4,
};
