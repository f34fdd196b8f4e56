import { type Acceptance, acceptanceRate } from "../../remote/acceptance.ts";
import type { Json } from "../../remote/json.ts";
import { speculationText } from "../../remote/reading.ts";
import type { Server } from "../../remote/server.ts";
import { percentText } from "../../text/numbers.ts";
import { outputText, seconds } from "../generate/report.ts";
import { type RemoteAnswer, tokenRate } from "./answer.ts";

const SOURCES: Readonly<Record<Acceptance["source"], string>> = {
  answer: "",
  metrics: " by the server's counters",
  server_info: " on average since the server started",
};

/** What is known of the drafts: `2.50 tokens a round, 83 % of drafts accepted`. */
function acceptanceText(acceptance: Acceptance | undefined): string {
  if (acceptance === undefined) return "acceptance not reported";
  const { source, draftTokens, acceptLength } = acceptance;
  if (draftTokens === 0) return `no drafts${SOURCES[source]}`;
  const rate = acceptanceRate(acceptance);
  const parts = [
    ...acceptLength === undefined ? [] : [`${acceptLength.toFixed(2)} tokens a drafting round`],
    ...rate === undefined ? [] : [`${percentText(rate)} of drafts accepted`],
  ];
  return parts.join(", ") + SOURCES[source];
}

/** The closing line of an answer. */
export function remoteStatsLine(answer: RemoteAnswer): string {
  const { promptTokens, cachedTokens = 0, firstMs, acceptance } = answer;
  const cached = cachedTokens > 0 ? ` (${cachedTokens} cached)` : "";
  return [
    answerText(answer),
    ...firstMs === undefined ? [] : [`the first after ${seconds(firstMs)}`],
    ...promptTokens === undefined ? [] : [`prompt ${promptTokens} tokens${cached}`],
    acceptanceText(acceptance),
  ].join(", ");
}

/** `--stats`: one fact a line. */
export function remoteStatsTable(server: Server, answer: RemoteAnswer): string {
  const { promptTokens, cachedTokens = 0, firstMs, finishReason, reading, acceptance } = answer;
  const { draftTokens, acceptedTokens } = acceptance ?? {};
  const rows: [string, string][] = [
    ["model", server.model],
    ["server", serverText(server)],
    ["speculation", speculationText(reading.speculation) ?? "not reported"],
    [
      "prompt",
      promptTokens === undefined ? "not counted" : `${promptTokens} tokens, ${cachedTokens} cached`,
    ],
    ...firstMs === undefined ? [] : [["first token", seconds(firstMs)] as [string, string]],
    [
      "output",
      `${answerText(answer)}, ended by ${finishReason}`,
    ],
    ...draftTokens === undefined
      ? []
      : [["drafts", `${draftTokens}, ${acceptedTokens ?? 0} accepted`] as [string, string]],
    ["acceptance", acceptanceText(acceptance).replace(/^acceptance /, "")],
  ];
  return rows.map(([name, text]) => `${name.padEnd(12)}${text}`).join("\n");
}

/** `vllm at http://127.0.0.1:8000`. */
export function serverText({ kind, endpoint: { shown } }: Server): string {
  return kind === "other" ? shown : `${kind} at ${shown}`;
}

/** The object of `generate --remote --json`; its field names are a public format. */
export function remoteJson(
  server: Server,
  answer: RemoteAnswer,
  request: Json,
): Record<string, unknown> {
  const { text, reasoning, finishReason, acceptance, reading: { speculation } } = answer;
  return {
    text,
    ...reasoning === "" ? {} : { reasoning },
    finish_reason: finishReason,
    usage: {
      prompt_tokens: answer.promptTokens ?? null,
      completion_tokens: answer.outputTokens ?? null,
      cached_tokens: answer.cachedTokens ?? null,
    },
    timing: {
      time_to_first_token_ms: rounded(answer.firstMs),
      decode_ms: rounded(answer.decodeMs),
      tokens_per_second: rounded(tokenRate(answer)),
    },
    speculative: {
      algorithm: speculation === undefined ? null : speculation.algorithm ?? "NONE",
      draft: speculation?.draft ?? null,
      num_steps: speculation?.numSteps ?? null,
      eagle_topk: speculation?.eagleTopk ?? null,
      num_draft_tokens: speculation?.numDraftTokens ?? null,
      adaptive: speculation?.adaptive ?? null,
      source: acceptance?.source ?? null,
      drafts: acceptance?.drafts ?? null,
      draft_tokens: acceptance?.draftTokens ?? null,
      accepted_tokens: acceptance?.acceptedTokens ?? null,
      mean_accept_length: rounded(acceptance?.acceptLength),
      draft_acceptance_rate: rounded(acceptance && acceptanceRate(acceptance)),
    },
    server: { url: server.endpoint.shown, kind: server.kind, model: server.model },
    request,
  };
}

/** Where the server does not count its tokens, the pieces that it sent are counted. */
function answerText(answer: RemoteAnswer): string {
  const { outputTokens, pieces, decodeMs } = answer;
  const [count, noun] = outputTokens === undefined ? [pieces, "piece"] : [outputTokens, "token"];
  return outputText(count, noun, { decodeMs, tokensPerSecond: tokenRate(answer) });
}

function rounded(value: number | undefined): number | null {
  return value === undefined ? null : Math.round(value * 1000) / 1000;
}
