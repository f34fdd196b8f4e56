import type { EngineInfo } from "../engine.ts";
import type { EngineEvent, GenerateRequest, GenerateResult } from "../schedule/events.ts";
import { generateResult, type RoundRecord } from "../schedule/result.ts";

/** What has come of a request until now, for when its end is not waited for. */
export interface PartialResult {
  readonly add: (event: EngineEvent) => void;
  /** The result if it ends here. */
  readonly interrupted: () => GenerateResult;
}

/** Collects a request's events. */
export function receive(info: EngineInfo, request: GenerateRequest): PartialResult {
  const started = performance.now();
  let prefilled: number | undefined;
  let [cached, reasoningTokens] = [0, 0];
  let text = "";
  const ids: number[] = [];
  const rounds: RoundRecord[] = [];
  return {
    add(event) {
      if (event.kind === "text") text += event.text;
      if (event.kind === "prefill") cached = event.cached;
      if (event.kind !== "round") return;
      prefilled ??= performance.now();
      ids.push(...event.ids);
      const { accepted, drafts, tier, predicted, ids: { length: emitted } } = event;
      if (tier) rounds.push({ drafts, accepted, emitted, tier, predicted });
      reasoningTokens = event.reasoningTokens ?? reasoningTokens;
    },
    interrupted() {
      const ended = performance.now();
      return generateResult(info, request, {
        finishReason: "interrupt",
        text,
        ids,
        rounds,
        started,
        prefilled: prefilled ?? ended,
        compileMs: 0,
        ended,
        cached,
        reasoningTokens,
      });
    },
  };
}
