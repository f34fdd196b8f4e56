import type { Quantization } from "../../gpu/weight_format.ts";
import { compiler } from "../../gpu/program.ts";
import { GREEDY } from "../../speculate/sampling.ts";
import { agreement, argmaxes, deviation } from "./check.ts";
import { openSequence } from "../device/single_sequence.ts";
import { type GenerateResult, resultOf } from "../schedule/events.ts";
import { forward } from "../device/logits_dump.ts";
import { statically } from "../drafting.ts";
import { type LocalEngine, openEngine } from "../open.ts";
import type { EngineOptions, ModelOptions } from "../options.ts";

/** Depth at which drafts are counted. */
const NUM_STEPS = 3;
/** Most tokens of an answer. */
const MAX_TOKENS = 96;
/** Logits of the unquantized model that the host keeps. */
const KEPT_BYTES = 256 << 20;

/** What a model loses by quantization. */
export interface QuantizedReport {
  readonly quantize: Quantization;
  readonly quantizeDraft: boolean;
  readonly weightBytes: Pair;
  readonly prompts: number;
  /** Positions of prompts and of the unquantized model's answers. */
  readonly positions: number;
  /** Errors of the logits, in standard deviations of the unquantized ones. */
  readonly logits: { readonly rms: number; readonly max: number };
  /** Mean over positions of sum p log(p / q), nats; p of the unquantized model. */
  readonly klDivergence: number;
  readonly argmaxAgreement: { readonly same: number; readonly total: number };
  /** Greedy answers that are the same to their end. */
  readonly textAgreement: { readonly same: number; readonly total: number };
  /** Tokens a round at `numSteps`, the bonus included; undefined without a draft. */
  readonly acceptLength: (Pair & { readonly numSteps: number }) | undefined;
}

interface Pair {
  readonly plain: number;
  readonly quantized: number;
}

export interface QuantizedCheck extends Omit<EngineOptions, "speculation"> {
  readonly model: ModelOptions & { readonly quantize: Quantization };
  readonly prompts: readonly string[];
}

/** What one of the two models did. */
interface Measured {
  readonly weightBytes: number;
  readonly vocabSize: number;
  readonly results: readonly GenerateResult[];
  /** [positions, vocab] */
  readonly logits: Float32Array;
}

/**
 * Runs the model as it is and quantized, one after the other: answers to the prompts, and the
 * logits of both over the prompts and the first one's answers.
 *
 * @throws UsageError when a checkpoint cannot be used.
 */
export async function checkQuantized(options: QuantizedCheck): Promise<QuantizedReport> {
  const { prompts, ...open } = options;
  const { quantize, quantizeDraft = false, ...model } = open.model;
  const plain = await measure({ ...open, model }, prompts, undefined);
  const sequences = plain.results.map(sequenceOf);
  const quantized = await measure(open, prompts, sequences);
  const { vocabSize } = plain;
  const text = ({ outputIds }: GenerateResult) => outputIds.join();
  const texts = quantized.results.map(text);
  return {
    quantize,
    quantizeDraft,
    weightBytes: { plain: plain.weightBytes, quantized: quantized.weightBytes },
    prompts: prompts.length,
    positions: plain.logits.length / vocabSize,
    logits: logitError(plain.logits, quantized.logits),
    klDivergence: klDivergence(plain.logits, quantized.logits, vocabSize),
    argmaxAgreement: agreement(
      argmaxes(quantized.logits, vocabSize),
      argmaxes(plain.logits, vocabSize),
    ),
    textAgreement: {
      same: plain.results.filter((result, i) => text(result) === texts[i]).length,
      total: prompts.length,
    },
    acceptLength: acceptLengths(plain, quantized),
  };
}

async function measure(
  open: EngineOptions,
  prompts: readonly string[],
  sequences: readonly (readonly number[])[] | undefined,
): Promise<Measured> {
  using engine = await openEngine({
    ...open,
    limits: { ...open.limits, sizeFlags: {} },
    hooks: { ...open.hooks, plan: statically(NUM_STEPS) },
  });
  const results: GenerateResult[] = [];
  for (const prompt of prompts) results.push(await answer(engine, prompt));
  const { vocabSize } = engine.runner.models.target.config;
  const ids = upTo(sequences ?? results.map(sequenceOf), KEPT_BYTES / 4 / vocabSize);
  return {
    weightBytes: engine.info.weights.bytes,
    vocabSize,
    results,
    logits: await logitsOf(engine, ids, vocabSize),
  };
}

function sequenceOf({ promptIds, outputIds }: GenerateResult): readonly number[] {
  return [...promptIds, ...outputIds];
}

/** The first of the sequences, `most` tokens in all. */
function upTo(sequences: readonly (readonly number[])[], most: number): (readonly number[])[] {
  let room = Math.floor(most);
  return sequences.map((ids) => {
    const taken = ids.slice(0, room);
    room -= taken.length;
    return taken;
  }).filter(({ length }) => length > 0);
}

async function answer(engine: LocalEngine, prompt: string): Promise<GenerateResult> {
  const request = {
    promptIds: engine.text.encodePrompt(
      engine.info.hasChatTemplate
        ? { messages: [{ role: "user", content: prompt }] }
        : { raw: prompt },
    ),
    sampling: GREEDY,
    maxTokens: MAX_TOKENS,
    stop: [],
    ignoreEos: false,
    numSteps: engine.info.tier.depth,
  };
  return await resultOf(engine.submit(request));
}

/** Logits over each sequence from its start, one below the other. */
async function logitsOf(
  { runner }: LocalEngine,
  sequences: readonly (readonly number[])[],
  vocabSize: number,
): Promise<Float32Array> {
  const out = new Float32Array(sequences.reduce((sum, { length }) => sum + length, 0) * vocabSize);
  const make = compiler(runner.gpu);
  let at = 0;
  for (const ids of sequences) {
    using sequence = openSequence(runner);
    if (!runner.reserve(sequence, ids.length)) throw new Error("no room for a sequence");
    const found = await forward(runner, sequence, ids, ["logits"], make);
    out.set(found.get("logits") as Float32Array, at);
    at += ids.length * vocabSize;
  }
  return out;
}

function logitError(plain: Float32Array, quantized: Float32Array): QuantizedReport["logits"] {
  let [square, max] = [0, 0];
  for (const [i, value] of plain.entries()) {
    const error = Math.abs((quantized[i] ?? NaN) - value);
    square += error * error;
    max = Math.max(max, error); // NaN stays
  }
  const std = deviation(plain);
  return { rms: Math.sqrt(square / plain.length) / std, max: max / std };
}

/** Mean Kullback-Leibler divergence of the rows of logits, nats. */
export function klDivergence(p: Float32Array, q: Float32Array, vocab: number): number {
  let sum = 0;
  for (let at = 0; at < p.length; at += vocab) {
    const [logP, logQ] = [p, q].map((logits) => logSoftmax(logits.subarray(at, at + vocab)));
    logP?.forEach((value, i) => sum += Math.exp(value) * (value - (logQ?.[i] ?? NaN)));
  }
  return sum * vocab / p.length;
}

function logSoftmax(logits: Float32Array): Float64Array {
  const most = logits.reduce((found, value) => Math.max(found, value), -Infinity);
  const total = logits.reduce((sum, value) => sum + Math.exp(value - most), 0);
  return Float64Array.from(logits, (value) => value - most - Math.log(total));
}

function acceptLengths(plain: Measured, quantized: Measured): QuantizedReport["acceptLength"] {
  const drafted = ({ results }: Measured) =>
    results.reduce((sum, { speculative }) => sum + speculative.draft_tokens, 0);
  if (drafted(plain) === 0) return undefined;
  const length = ({ results }: Measured) => {
    const total = (of: "rounds" | "accepted_tokens") =>
      results.reduce((sum, { speculative }) => sum + speculative[of], 0);
    return 1 + total("accepted_tokens") / total("rounds");
  };
  return { plain: length(plain), quantized: length(quantized), numSteps: NUM_STEPS };
}
