import { asError, UsageError } from "../../errors.ts";
import { PAGE } from "../../model/device_layout.ts";
import {
  inRange,
  type NumberRange,
  rangeText,
  REQUEST_RANGES,
} from "../../speculate/request_ranges.ts";
import { chain, isChain } from "../../speculate/round_shape.ts";
import type { Sampling } from "../../speculate/sampling.ts";
import { type EngineSizes, maxDepth } from "../device/buffers.ts";
import type { GenerateRequest } from "./events.ts";
import type { OutputConfig } from "./output.ts";
import { cellsAtEnd } from "./sequence_pages.ts";

/**
 * @throws UsageError for a prompt or prediction with an id that is no token of the target, for numbers outside of
 * `REQUEST_RANGES`, and for a request that no slot could ever hold or that the tiers cannot run.
 *
 * @param host.predicts whether a prediction can be drafted from.
 * @param host.tiers shapes whose chains limit the request's steps; default: all that the engine has memory for, those
 * of predictions and of texts that a grammar forces among them.
 */
export function checkRequest(
  capacity: EngineSizes,
  outputs: Pick<OutputConfig, "name" | "contextLength" | "vocabSize">,
  request: GenerateRequest,
  { predicts = false, tiers = capacity.shapes }: {
    readonly predicts?: boolean;
    readonly tiers?: EngineSizes["shapes"] | undefined;
  } = {},
): void {
  const { name, contextLength } = outputs;
  const { promptIds, maxTokens, numSteps, prediction } = request;
  const { length } = promptIds;
  if (length === 0) {
    throw new UsageError("Cannot generate: the prompt is empty", { field: "promptIds" });
  }
  if (length >= contextLength) {
    throw new UsageError(
      `Cannot generate: the prompt has ${length} tokens, ` +
        `the context of "${name}" holds ${contextLength}`,
      { field: "promptIds" },
    );
  }
  checkIds(outputs, promptIds, "prompt");
  if (prediction !== undefined) {
    checkIds(outputs, prediction, "prediction");
    if (!predicts) {
      throw new UsageError("Cannot draft from a prediction: the engine was opened for none", {
        field: "prediction",
      });
    }
  }
  checkSampling(outputs, request.sampling);
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1) {
    throw new UsageError(`Cannot generate: max tokens is ${shown(maxTokens)}, it is 1 or more`, {
      field: "maxTokens",
    });
  }
  for (const stop of request.stop) {
    if (typeof stop === "string" && stop !== "") continue;
    throw new UsageError(`Cannot stop at ${shown(stop)}: a stop text has one character or more`, {
      field: "stop",
    });
  }
  if (request.logprobs !== undefined) {
    checkNumber("logprobs", request.logprobs, REQUEST_RANGES.logprobs, { whole: true });
  }
  if (numSteps !== undefined) checkSteps(tiers, numSteps);
  const cells = cellsAtEnd(capacity, request);
  if (cells > capacity.pages * PAGE) {
    throw new UsageError(
      `Cannot generate: prompt and output may take ${cells} tokens of keys and values, ` +
        `--max-kv-tokens is ${capacity.pages * PAGE}`,
    );
  }
}

/** 0 steps are always allowed; any other number is at most the depth of the deepest chain among the tiers. */
function checkSteps(shapes: EngineSizes["shapes"], numSteps: number): void {
  const deepest = maxDepth({ shapes: [chain(0), ...shapes.filter(isChain)] });
  if (Number.isInteger(numSteps) && numSteps >= 0 && numSteps <= deepest) return;
  const why = deepest > 0 || shapes.every(isChain)
    ? `rounds have at most ${deepest}`
    : "the engine drafts trees alone, a request has 0 steps or those of the engine";
  throw new UsageError(`Cannot generate with ${shown(numSteps)} draft steps: ${why}`, {
    field: "numSteps",
  });
}

const WHOLE: readonly string[] = ["topK", "seed"];

function checkSampling(
  { name, vocabSize }: Pick<OutputConfig, "name" | "vocabSize">,
  { logitBias, ...numbers }: Sampling,
): void {
  const { logitBias: biasRange, logprobs: _, ...ranges } = REQUEST_RANGES;
  for (const [key, range] of Object.entries(ranges)) {
    const whole = WHOLE.includes(key);
    checkNumber(key, numbers[key as keyof typeof numbers], range, { whole, name: NAMES[key] });
  }
  for (const [id, bias] of Object.entries(logitBias)) {
    if (!/^\d+$/.test(id) || Number(id) >= vocabSize) {
      throw new UsageError(
        `Cannot bias token id ${id.slice(0, 50)}: "${name}" has ids 0 to ${vocabSize - 1}`,
        { field: "logitBias" },
      );
    }
    checkNumber("logitBias", bias, biasRange, { name: `the bias of token id ${id}` });
  }
}

/** Names of fields for people, if they are different. */
const NAMES: Readonly<Record<string, string>> = {
  topK: "top-k",
  topP: "top-p",
  minP: "min-p",
  repetitionPenalty: "the repetition penalty",
  frequencyPenalty: "the frequency penalty",
  presencePenalty: "the presence penalty",
};

/** @throws UsageError outside of the range, and for what is no number. */
function checkNumber(
  field: string,
  value: unknown,
  range: NumberRange,
  { whole = false, name = field }: {
    readonly whole?: boolean;
    /** Name of the field for people. */
    readonly name?: string | undefined;
  } = {},
): void {
  if (inRange(value, range) && (!whole || Number.isInteger(value))) return;
  const kind = whole && inRange(value, range) ? "a whole number, " : "";
  throw new UsageError(
    `Cannot generate: ${name} is ${shown(value)}, it is ${kind}${rangeText(range)}`,
    { field },
  );
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : asError(value).message;
  return text.slice(0, 50);
}

/** A wrong id would read beyond the rows of the embedding, and the device reports no error for that. */
function checkIds(
  { name, vocabSize }: Pick<OutputConfig, "name" | "vocabSize">,
  ids: readonly number[],
  what: "prompt" | "prediction",
): void {
  const position = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (position < 0) return;
  throw new UsageError(
    `Cannot generate: the ${what} has token id ${ids[position]} at position ${position}, ` +
      `"${name}" has ids 0 to ${vocabSize - 1}`,
    { field: what === "prompt" ? "promptIds" : "prediction" },
  );
}
