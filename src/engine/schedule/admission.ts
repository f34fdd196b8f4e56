import { UsageError } from "../../errors.ts";
import { PAGE } from "../../model/plan/rows_layout.ts";
import { isChain } from "../../speculate/round_shape.ts";
import { type Capacity, mostDepth } from "../device/buffers.ts";
import { MOST_LOGPROBS } from "../device/choice/logprobs.ts";
import type { GenerateRequest } from "./events.ts";
import type { Outputs } from "./output.ts";
import { cellsAtEnd } from "./sequence_pages.ts";

/**
 * @throws UsageError for a prompt or prediction with what is no token of the target, and for a request
 * that no slot could ever hold or that the tiers cannot run.
 *
 * @param host.predicts whether a prediction can be drafted from.
 */
export function checkRequest(
  capacity: Capacity,
  outputs: Pick<Outputs, "name" | "contextLength" | "vocabSize">,
  request: GenerateRequest,
  { predicts = false }: { readonly predicts?: boolean } = {},
): void {
  const { name, contextLength, vocabSize } = outputs;
  const { promptIds, maxTokens, numSteps, prediction } = request;
  const { length } = promptIds;
  if (length === 0) throw new UsageError("Cannot generate: the prompt is empty");
  if (length >= contextLength) {
    throw new UsageError(
      `Cannot generate: the prompt has ${length} tokens, ` +
        `the context of "${name}" holds ${contextLength}`,
    );
  }
  checkIds(outputs, promptIds, "prompt");
  if (prediction !== undefined) {
    checkIds(outputs, prediction, "prediction");
    if (!predicts) {
      throw new UsageError("Cannot draft from a prediction: the engine was opened for none");
    }
  }
  const unknown = Object.keys(request.sampling.logitBias).find((id) => Number(id) >= vocabSize);
  if (unknown !== undefined) {
    throw new UsageError(
      `Cannot bias token id ${unknown}: "${name}" has ids 0 to ${vocabSize - 1}`,
    );
  }
  if (maxTokens < 1) throw new UsageError(`Cannot generate: max tokens is ${maxTokens}`);
  checkLogprobs(request);
  const deepest = mostDepth({ shapes: capacity.shapes.filter(isChain) });
  if (numSteps !== undefined && numSteps > deepest) {
    throw new UsageError(
      `Cannot generate with ${numSteps} draft steps: the deepest tier has ${deepest}`,
    );
  }
  const cells = cellsAtEnd(capacity, request);
  if (cells > capacity.pages * PAGE) {
    throw new UsageError(
      `Cannot generate: prompt and output may take ${cells} tokens of keys and values, ` +
        `--max-kv-tokens is ${capacity.pages * PAGE}`,
    );
  }
}

function checkLogprobs({ logprobs = 0 }: GenerateRequest): void {
  if (Number.isInteger(logprobs) && logprobs >= 0 && logprobs <= MOST_LOGPROBS) return;
  throw new UsageError(`Cannot generate: logprobs is ${logprobs}, it is 0 to ${MOST_LOGPROBS}`);
}

/** The embedding would be read beyond its rows, and what it gives there is no error on the device. */
function checkIds(
  { name, vocabSize }: Pick<Outputs, "name" | "vocabSize">,
  ids: readonly number[],
  what: "prompt" | "prediction",
): void {
  const position = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (position < 0) return;
  throw new UsageError(
    `Cannot generate: the ${what} has token id ${ids[position]} at position ${position}, ` +
      `"${name}" has ids 0 to ${vocabSize - 1}`,
  );
}
