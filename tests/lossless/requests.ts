/** Requests of every kind, by number. */
import type { GenerateRequest } from "../../src/engine/schedule/events.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
import type { LocalEngine } from "../engine/open.ts";
import type { Case } from "./axes.ts";

/** Tokens of the answers in turn, at most. */
const MAX = { software: [20, 20, 9, 13], hardware: [6, 6, 3, 4] } as const;

/** Prompts of many kinds; two are the same. */
const PROMPTS = [0, 5, 8, 12, 9, 6, 13, 1, 11, 0];

/** Begins every prompt, so that they have pages in common. */
const SHARED = "Answer in one short line, in plain English, and say nothing else.";

type Kind = Exclude<Case["requests"], "mixed">;

const KINDS: readonly Kind[] = ["greedy", "sampled", "penalized", "constrained", "logprobs"];

const GRAMMARS: readonly Grammar[] = [
  { kind: "regex", pattern: "([a-z]{1,6} ){2,5}(one|two|three) end" },
  {
    kind: "json schema",
    schema: {
      type: "array",
      items: { enum: ["first item", "second item"] },
      minItems: 3,
      maxItems: 6,
    },
  },
];

function kindOf(requests: Case["requests"], n: number): Kind {
  return requests === "mixed" ? KINDS[n % KINDS.length] as Kind : requests;
}

function samplingOf(kind: Kind, n: number): Sampling {
  const seed = 100 + n;
  switch (kind) {
    case "greedy":
      return GREEDY;
    case "sampled":
      return {
        ...GREEDY,
        temperature: 0.6 + 0.3 * (n % 3),
        seed,
        topK: n % 2 ? 0 : 30,
        topP: 0.95,
      };
    case "penalized":
      return {
        ...GREEDY,
        temperature: n % 2 ? 0.8 : 0,
        seed,
        repetitionPenalty: 1.6,
        frequencyPenalty: 1.5,
        presencePenalty: 0.8,
        logitBias: { 17: 2, 40: -3 },
      };
    default:
      return { ...GREEDY, temperature: n % 2 ? 0.9 : 0, seed, minP: 0.02 };
  }
}

/** Request `n`; the same whatever engine it goes to. */
export function requestOf(
  engine: LocalEngine,
  { requests, kernels }: Pick<Case, "requests" | "kernels">,
  n: number,
): GenerateRequest {
  const kind = kindOf(requests, n);
  const content = generatedPrompt(PROMPTS[n % PROMPTS.length] as number);
  const constrained = kind === "constrained";
  return {
    promptIds: engine.text.encodePrompt({
      messages: [{ role: "system", content: SHARED }, { role: "user", content }],
    }),
    sampling: samplingOf(kind, n),
    maxTokens: MAX[kernels][n % 4] as number,
    stop: n % 7 === 3 ? [", 1", " the "] : [],
    ignoreEos: n % 5 === 2 && !constrained,
    ...constrained ? { grammar: GRAMMARS[n % 2] as Grammar } : {},
    ...kind === "logprobs" ? { logprobs: n % 3 } : {},
  };
}

/** What a request predicts as its answer: nothing, it, or it with mistakes. */
export function predictionOf(
  prediction: Case["prediction"],
  ids: readonly number[],
): Pick<GenerateRequest, "prediction"> {
  if (prediction === "none") return {};
  if (prediction === "right") return { prediction: ids };
  return { prediction: [...ids.slice(0, 5), 77, ...ids.slice(6, 12), 78, 79, ...ids.slice(14)] };
}
