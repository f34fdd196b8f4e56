import { UsageError } from "../errors.ts";
import { PAGE } from "../model/rows_layout.ts";
import { type Capacity, maxSteps } from "./buffers.ts";
import type { GenerateRequest } from "./events.ts";
import type { Outputs } from "./output.ts";
import { cellsAtEnd } from "./schedule/sequence_pages.ts";

/** @throws UsageError for a request that no slot could ever hold, or that the tiers cannot run. */
export function checkRequest(
  capacity: Capacity,
  { name, contextLength }: Outputs,
  request: GenerateRequest,
): void {
  const { promptIds, maxTokens, numSteps } = request;
  const { length } = promptIds;
  if (length === 0) throw new UsageError("Cannot generate: the prompt is empty");
  if (length >= contextLength) {
    throw new UsageError(
      `Cannot generate: the prompt has ${length} tokens, ` +
        `the context of "${name}" holds ${contextLength}`,
    );
  }
  if (maxTokens < 1) throw new UsageError(`Cannot generate: max tokens is ${maxTokens}`);
  if (numSteps > maxSteps(capacity)) {
    throw new UsageError(
      `Cannot generate with num_steps ${numSteps}: the deepest tier is ${maxSteps(capacity)}`,
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
