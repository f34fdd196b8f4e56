import { type Acceptance, counted } from "./acceptance.ts";

/** What vLLM, and who took over its names, counts of speculation since its start. */
export interface Counters {
  readonly drafts: number;
  readonly draftTokens: number;
  readonly acceptedTokens: number;
}

const NAMES = {
  num_drafts: "drafts",
  num_draft_tokens: "draftTokens",
  num_accepted_tokens: "acceptedTokens",
} as const;

/** A sample of Prometheus' text format: `vllm:NAME_total{label="value"} 12.0`. */
const SAMPLE =
  /^\w+:spec_decode_(\w+?)(?:_total)?(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]+(\S+)/gm;

/** The counters of a text that GET /metrics answered, all engines added; undefined without them. */
export function countersIn(text: string): Counters | undefined {
  const sums = { drafts: 0, draftTokens: 0, acceptedTokens: 0 };
  let found = false;
  for (const [, name = "", value = ""] of text.matchAll(SAMPLE)) {
    if (!Object.hasOwn(NAMES, name) || !Number.isFinite(Number(value))) continue;
    sums[NAMES[name as keyof typeof NAMES]] += Number(value);
    found = true;
  }
  return found ? sums : undefined;
}

/** The difference of two readings; undefined if the server was restarted between them. */
export function between(before: Counters, after: Counters): Acceptance | undefined {
  const drafts = after.drafts - before.drafts;
  const draftTokens = after.draftTokens - before.draftTokens;
  const acceptedTokens = after.acceptedTokens - before.acceptedTokens;
  if (Math.min(drafts, draftTokens, acceptedTokens) < 0) return undefined;
  return counted("metrics", { drafts, draftTokens, acceptedTokens });
}
