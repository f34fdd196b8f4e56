import type { Rope } from "./config.ts";
import { type Fields, integer, nested, positive, quote, unusable, value } from "./fields.ts";

/** Longest context a config may claim, tokens. */
export const MOST_POSITIONS: number = 2 ** 25;

const DEFAULT_THETA = 10_000;
const KINDS = ["default", "llama3"];

/**
 * The rotary embedding of a config: `rope_parameters` (transformers 5), or `rope_theta` and
 * `rope_scaling` (with `rope_type`, in old files `type`).
 * @throws UsageError for a kind of scaling that Eyrie does not compute.
 */
export function parseRope(config: Fields): Rope {
  const parameters = nested(config, "rope_parameters");
  const scaling = parameters ?? nested(config, "rope_scaling");
  const plainTheta = positive(config, "rope_theta", DEFAULT_THETA);
  const theta = parameters ? positive(parameters, "rope_theta", plainTheta) : plainTheta;
  checkWholeHeads(config);
  if (scaling === undefined) return { theta, scaling: { kind: "default" } };
  checkWholeHeads(scaling);
  return { theta, scaling: parseScaling(scaling) };
}

function parseScaling(fields: Fields): Rope["scaling"] {
  const kind = value(fields, "rope_type") ?? value(fields, "type");
  // rope_parameters may hold nothing but the theta; one for each kind of layer has no known key.
  if (kind === "default" || (kind === undefined && value(fields, "rope_theta") !== undefined)) {
    return { kind: "default" };
  }
  if (kind !== "llama3") {
    throw unusable(fields, `has rope_type ${quote(kind ?? null)}, known are ${KINDS.join(", ")}`);
  }
  const lowFreqFactor = positive(fields, "low_freq_factor");
  const highFreqFactor = positive(fields, "high_freq_factor");
  if (highFreqFactor <= lowFreqFactor) {
    const why = `has high_freq_factor ${highFreqFactor}, expected more than low_freq_factor`;
    throw unusable(fields, `${why} ${lowFreqFactor}`);
  }
  const originalMaxPositions = integer(fields, "original_max_position_embeddings", {
    least: 1,
    most: MOST_POSITIONS,
  });
  const factor = positive(fields, "factor");
  return { kind, factor, lowFreqFactor, highFreqFactor, originalMaxPositions };
}

function checkWholeHeads(fields: Fields): void {
  const part = positive(fields, "partial_rotary_factor", 1);
  if (part !== 1) throw unusable(fields, `has partial_rotary_factor ${part}, expected 1`);
}
