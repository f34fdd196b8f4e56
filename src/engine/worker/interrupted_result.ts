import type { EngineInfo } from "../engine.ts";
import type {
  EngineEvent,
  GenerateRequest,
  GenerateResult,
  TextLogprobs,
} from "../schedule/events.ts";
import { generateResult, type RoundRecord } from "../schedule/result.ts";

/** The events of a request until now. Times are performance.now(). */
export interface ReceivedEvents {
  readonly started: number;
  readonly events: readonly { readonly at: number; readonly event: EngineEvent }[];
}

/** The result of a request that ends here, for when its engine's thread does not say it in time. */
export function interruptedResult(
  info: EngineInfo,
  request: GenerateRequest,
  { started, events }: ReceivedEvents,
): GenerateResult {
  const ended = performance.now();
  let admitted: number | undefined;
  let prefilled: number | undefined;
  let [cached, reasoningTokens] = [0, 0];
  let text = "";
  const ids: number[] = [];
  const rounds: RoundRecord[] = [];
  const logprobs: TextLogprobs[] = [];
  for (const { at, event } of events) {
    if (event.kind === "text") text += event.text;
    if (event.kind === "prefill") {
      cached = event.cached;
      admitted ??= at;
    }
    if (event.kind !== "round") continue;
    prefilled ??= at;
    ids.push(...event.ids);
    logprobs.push(...event.logprobs ?? []);
    const { accepted, drafts, tier, predicted, ids: { length: emitted } } = event;
    if (tier) rounds.push({ drafts, accepted, emitted, tier, predicted });
    reasoningTokens = event.reasoningTokens ?? reasoningTokens;
  }
  return generateResult(info, request, {
    finishReason: "interrupt",
    text,
    ids,
    rounds,
    started,
    admitted: admitted ?? ended,
    prefilled: prefilled ?? ended,
    compileMs: 0,
    ended,
    cached,
    reasoningTokens,
    ...request.logprobs !== undefined && { logprobs },
  });
}
