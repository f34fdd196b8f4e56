import type { Tuning } from "../../src/gpu/matrix.ts";
import type { Heads } from "../lib/heads.ts";
import { partialWords } from "../attention/attention.ts";
import type { PartialWords } from "../attention/partial_sums.ts";
import { attendWords } from "../attention/units/attend.ts";
import { latentPartialWords, tilesLatents } from "./latent_attention.ts";

/** f32 words of what a layer's attention over at most `rows` rows keeps. */
export function attentionPartialWords(
  heads: Heads,
  rows: number,
  adapter: Pick<Tuning, "software" | "workgroupBytes" | "attentionUnits">,
): PartialWords {
  const { rank } = heads;
  if (rank === undefined) return attendWords(heads, rows, adapter);
  return tilesLatents(heads, adapter)
    ? latentPartialWords({ ...heads, rank }, rows)
    : partialWords(heads, rows, adapter);
}
