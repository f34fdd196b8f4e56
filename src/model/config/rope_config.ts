/** Reads rotary embeddings: `rope_parameters`, or `rope_theta` and `rope_scaling`. */
import { isObject } from "../../objects.ts";
import {
  type Fields,
  flag,
  integer,
  nested,
  positive,
  quote,
  unusable,
  value,
} from "../files/fields.ts";

/** Rotary embedding: pair (i, i + width / 2) of a head is rotated by p theta^(-2i / width), scaled. */
export interface Rope {
  readonly theta: number;
  /** Number of leading elements of a head that are rotated, even; the rest stay as they are. */
  readonly width: number;
  readonly scaling: RopeScaling;
  /** Whether frequencies are rounded to bf16 (`withRoundedBuffers`); default: they are not. */
  readonly rounded?: boolean;
}

/** Scaling for contexts longer than those of the training; see src/model/weights/rope_table.ts for the formulas. */
export type RopeScaling =
  | { readonly kind: "default" }
  /** Nothing is rotated. */
  | { readonly kind: "none" }
  | { readonly kind: "linear"; readonly factor: number }
  /** The first `pairs` pairs of a head are rotated, with frequencies for its whole width; the others not (Gemma 4). */
  | { readonly kind: "proportional"; readonly pairs: number; readonly factor: number }
  | { readonly kind: "dynamic"; readonly factor: number; readonly maxPositions: number }
  | {
    readonly kind: "llama3";
    readonly factor: number;
    readonly lowFreqFactor: number;
    readonly highFreqFactor: number;
    readonly originalMaxPositions: number;
  }
  | {
    readonly kind: "yarn";
    readonly factor: number;
    readonly originalMaxPositions: number;
    /** Turns within the original context: faster pairs are kept, pairs slower than `betaSlow` are scaled. */
    readonly betaFast: number;
    readonly betaSlow: number;
    readonly truncate: boolean;
    /** Factor of cos and sin. */
    readonly attentionFactor: number;
  }
  | {
    readonly kind: "longrope";
    readonly originalMaxPositions: number;
    /** Factors of the pairs, [width / 2]: short for contexts up to the original one, long for longer ones. */
    readonly shortFactors: readonly number[];
    readonly longFactors: readonly number[];
    readonly attentionFactor: number;
  };

/** Longest context a config may claim, tokens. */
const MAX_POSITIONS = 2 ** 25;

/**
 * The fields with one rope, chosen as transformers does: `rope_scaling` if there is anything in it, else
 * `rope_parameters`. Where those have an object for each kind of layer, `rope_scaling` changes that of full layers.
 */
export function oneRope(config: Fields): Fields {
  const scaling = nested(config, "rope_scaling")?.values ?? {};
  const parameters = nested(config, "rope_parameters")?.values;
  const keep = (ropes: Readonly<Record<string, unknown>>) => ({
    ...config,
    values: { ...config.values, ...ropes },
  });
  if (Object.keys(scaling).length === 0) return keep({ rope_scaling: undefined });
  if (!parameters || !isPerLayer(parameters)) return keep({ rope_parameters: undefined });
  const { full_attention } = parameters;
  const full = { ...isObject(full_attention) ? full_attention : {}, ...scaling };
  return keep({
    rope_scaling: undefined,
    rope_parameters: { ...parameters, full_attention: full },
  });
}

/**
 * The fields without the `partial_rotary_factor` of ropes that are not scaled: most families of transformers read it
 * only for scaled ones.
 */
export function turnWholeHeads(config: Fields): Fields {
  const { [PARTIAL]: part, ...values } = config.values;
  const withPart = (rope: Readonly<Record<string, unknown>>) =>
    (rope.rope_type ?? rope.type ?? "default") === "default"
      ? { ...rope, [PARTIAL]: undefined }
      : { [PARTIAL]: part, ...rope };
  const ropes = ["rope_parameters", "rope_scaling"].flatMap((key) => {
    const rope = nested(config, key)?.values;
    if (!rope) return [];
    const perLayer = Object.entries(rope).map(([type, each]) =>
      [type, isObject(each) ? withPart(each) : each] as const
    );
    return [[key, isPerLayer(rope) ? Object.fromEntries(perLayer) : withPart(rope)] as const];
  });
  return { ...config, values: { ...values, ...Object.fromEntries(ropes) } };
}

const PARTIAL = "partial_rotary_factor";
const ORIGINAL = "original_max_position_embeddings";

/** Whether `rope_parameters` have an object for each kind of layer. */
function isPerLayer(parameters: Readonly<Record<string, unknown>>): boolean {
  return Object.values(parameters).some(isObject);
}

/**
 * The rotary embedding of a config: `rope_parameters` (transformers 5), or `rope_theta` and
 * `rope_scaling` (with `rope_type`, in old files `type`).
 * @throws UsageError for a kind of scaling that Eyrie does not compute.
 */
export function parseRope(config: Fields, headDim: number): Rope {
  return parseRopeOf(config, ropeFields(config), headDim);
}

/** The object that describes the rope; undefined where there is none. */
export function ropeFields(config: Fields): Fields | undefined {
  return nested(config, "rope_parameters") ?? nested(config, "rope_scaling");
}

/**
 * The rotary embedding of one kind of layer, where `rope_parameters` has an object for each
 * (`{ full_attention: {...}, sliding_attention: {...} }`); undefined where it has none for this kind.
 */
export function parseLayerRope(config: Fields, type: string, headDim: number): Rope | undefined {
  const parameters = nested(config, "rope_parameters");
  const inside = parameters && nested(parameters, type);
  // At the top level transformers reads it only where there is one rope.
  const values = { ...config.values, [ORIGINAL]: undefined };
  return inside && parseRopeOf({ ...config, values }, inside, headDim);
}

/** Places of ropes in what `ropesByLayerType` returns. */
export const FULL = 0;
export const SLIDING = 1;

/**
 * The ropes of full and of sliding layers, where `rope_parameters` has an object for each. Without sliding layers it is
 * the first alone; without full ones the first rotates nothing.
 *
 * @param absent parameters if config.json has none.
 * @throws UsageError where a kind that layers have is missing.
 */
export function ropesByLayerType(
  config: Fields,
  layers: readonly { readonly sliding: boolean; readonly headDim: number }[],
  absent: Readonly<Record<string, unknown>>,
): Rope[] {
  const rope_parameters = value(config, "rope_parameters") ?? absent;
  const fields = { ...config, values: { ...config.values, rope_parameters } };
  return ["full_attention", "sliding_attention"].flatMap((type, kind) => {
    const layer = layers.find(({ sliding }) => sliding === (kind === SLIDING));
    if (layer === undefined) return kind === FULL ? noRope(layers[0]?.headDim ?? 0) : [];
    const rope = parseLayerRope(fields, type, layer.headDim);
    if (rope === undefined) throw unusable(config, `has no rope_parameters for ${quote(type)}`);
    return rope;
  });
}

/** The rope of layers whose queries and keys are not rotated. */
export function noRope(headDim: number): Rope {
  return { theta: 1, width: headDim, scaling: { kind: "none" } };
}

/** Reads the rotary embedding from the object `inside`, and from the config what that leaves out. */
function parseRopeOf(config: Fields, inside: Fields | undefined, headDim: number): Rope {
  const own = inside && value(inside, "rope_theta") !== undefined ? inside : config;
  const theta = positive(own, "rope_theta");
  const turned = rotatedWidth(config, inside, headDim);
  if (inside && ropeKind(inside) === "proportional") {
    const factor = positive(inside, "factor", 1);
    return { theta, width: headDim, scaling: { kind: "proportional", pairs: turned / 2, factor } };
  }
  const width = turned;
  const scaling = inside ? parseScaling(config, inside, width) : { kind: "default" } as const;
  return { theta, width, scaling };
}

/**
 * Most tokens that a model may be run with: `max_position_embeddings`, times the scaling factor if
 * config.json counts only the positions of the training.
 */
export function positionLimit(config: Fields, rope: Rope | undefined): number {
  const said = integer(config, "max_position_embeddings", { min: 1, max: MAX_POSITIONS });
  const { scaling } = rope ?? {};
  const reached = (from: number, factor: number) => Math.max(said, Math.floor(from * factor));
  switch (scaling?.kind) {
    case "linear":
    case "dynamic":
      return Math.min(MAX_POSITIONS, reached(said, scaling.factor));
    case "yarn":
      return Math.min(MAX_POSITIONS, reached(scaling.originalMaxPositions, scaling.factor));
    default:
      return said;
  }
}

type Reader = (config: Fields, inside: Fields, width: number) => RopeScaling;

const SCALINGS: Readonly<Record<string, Reader>> = {
  default: () => ({ kind: "default" }),
  linear: (_, inside) => ({ kind: "linear", factor: factorOf(inside) }),
  dynamic: (config, inside) => ({
    kind: "dynamic",
    factor: factorOf(inside),
    maxPositions: integer(config, "max_position_embeddings", { min: 1, max: MAX_POSITIONS }),
  }),
  llama3: parseLlama3,
  yarn: parseYarn,
  longrope: parseLongrope,
  su: parseLongrope,
};

function parseScaling(config: Fields, inside: Fields, width: number): RopeScaling {
  // Objects for each kind of layer are not for a family that has one rope.
  const kind = ropeKind(inside) ?? (isPerLayer(inside.values) ? undefined : "default");
  // The first Phi-3 files call longrope "yarn".
  const old = kind === "yarn" && value(inside, "long_factor") !== undefined;
  if (typeof kind === "string" && Object.hasOwn(SCALINGS, kind)) {
    return (old ? parseLongrope : SCALINGS[kind] as Reader)(config, inside, width);
  }
  const known = [...Object.keys(SCALINGS), "proportional"].join(", ");
  throw unusable(inside, `has rope_type ${quote(kind ?? null)}, known are ${known}`);
}

/** `rope_type`, in old files `type`. */
export function ropeKind(inside: Fields): unknown {
  return value(inside, "rope_type") ?? value(inside, "type");
}

function rotatedWidth(config: Fields, inside: Fields | undefined, headDim: number): number {
  const key = PARTIAL;
  const part = positive(config, key, 1);
  const factor = inside ? positive(inside, key, part) : part;
  const width = Math.trunc(headDim * factor);
  if (factor <= 1 && width >= 2 && width % 2 === 0) return width;
  const why = `has ${key} ${factor}, expected an even number of the ${headDim} of a head`;
  throw unusable(config, why);
}

/** Reads a scaling factor, which cannot be less than 1. */
function factorOf(inside: Fields): number {
  const factor = positive(inside, "factor");
  if (factor >= 1) return factor;
  throw unusable(inside, `has factor ${factor}, expected at least 1`);
}

/** Reads the original context. A value at the top level wins (Phi-3); without any it is the whole context. */
export function originalPositions(config: Fields, inside: Fields): number {
  const where = [config, inside].find((fields) => value(fields, ORIGINAL) !== undefined);
  return integer(where ?? config, where ? ORIGINAL : "max_position_embeddings", {
    min: 2,
    max: MAX_POSITIONS,
  });
}

function parseLlama3(config: Fields, inside: Fields): RopeScaling {
  const lowFreqFactor = positive(inside, "low_freq_factor");
  const highFreqFactor = positive(inside, "high_freq_factor");
  if (highFreqFactor <= lowFreqFactor) {
    const why = `has high_freq_factor ${highFreqFactor}, expected more than low_freq_factor`;
    throw unusable(inside, `${why} ${lowFreqFactor}`);
  }
  const originalMaxPositions = originalPositions(config, inside);
  const factor = positive(inside, "factor");
  return { kind: "llama3", factor, lowFreqFactor, highFreqFactor, originalMaxPositions };
}

function parseYarn(config: Fields, inside: Fields): RopeScaling {
  const factor = factorOf(inside);
  return {
    kind: "yarn",
    factor,
    originalMaxPositions: originalPositions(config, inside),
    betaFast: positive(inside, "beta_fast", 32),
    betaSlow: positive(inside, "beta_slow", 1),
    truncate: flag(inside, "truncate", true),
    attentionFactor: positive(
      inside,
      "attention_factor",
      yarnAttention(inside, factor) * positive(inside, "attn_factor", 1),
    ),
  };
}

/** m(mscale) / m(mscale_all_dim) where both are given and not 0, else m(1). */
function yarnAttention(inside: Fields, factor: number): number {
  const given = ["mscale", "mscale_all_dim"].map((key) => value(inside, key) || undefined);
  if (given.includes(undefined)) return yarnScale(factor, 1);
  const [over, under] = ["mscale", "mscale_all_dim"].map((key) =>
    yarnScale(factor, positive(inside, key))
  );
  return over as number / (under as number);
}

/** m(k) = 0.1 k ln(factor) + 1: how much sharper attention gets with the context. */
export function yarnScale(factor: number, k: number): number {
  return factor <= 1 ? 1 : 0.1 * k * Math.log(factor) + 1;
}

function parseLongrope(config: Fields, inside: Fields, width: number): RopeScaling {
  const originalMaxPositions = originalPositions(config, inside);
  const max = integer(config, "max_position_embeddings", { min: 1, max: MAX_POSITIONS });
  const factor = positive(inside, "factor", max / originalMaxPositions);
  const grown = Math.sqrt(1 + Math.log(factor) / Math.log(originalMaxPositions));
  return {
    kind: "longrope",
    originalMaxPositions,
    shortFactors: factors(inside, "short_factor", width / 2),
    longFactors: factors(inside, "long_factor", width / 2),
    attentionFactor: positive(inside, "attention_factor", factor <= 1 ? 1 : grown),
  };
}

function factors(inside: Fields, key: string, pairs: number): readonly number[] {
  const list = value(inside, key);
  const isFactor = (item: unknown) => typeof item === "number" && item > 0 && item < 2 ** 24;
  if (Array.isArray(list) && list.length === pairs && list.every(isFactor)) return list;
  throw unusable(inside, `has no ${key} of ${pairs} numbers above 0`);
}
