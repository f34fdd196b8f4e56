import { logprobWords } from "../../../kernels/sample/logprobs.ts";
import { RESULT_CHOICES, resultWords } from "../../model/device_layout.ts";
import { readLogprobs } from "./choice/logprobs.ts";
import type { FirstToken } from "./runner.ts";
import type { RunResult } from "./submit/submit.ts";

/**
 * The first tokens of the prompts that ended in a forward, in their order.
 *
 * @param logprobs see `SamplingKind`.
 */
export function* promptResults(
  { words, extra }: Pick<RunResult, "words" | "extra">,
  logprobs: number | undefined,
): Generator<FirstToken, undefined> {
  const size = resultWords(1);
  for (let at = 0; at < words.length / size; at++) {
    const id = words[at * size + RESULT_CHOICES] ?? 0;
    const own = logprobs === undefined ? extra : extra.subarray(at * logprobWords(logprobs));
    yield { id, logprobs: readLogprobs(own, [id], logprobs)?.[0] };
  }
}
