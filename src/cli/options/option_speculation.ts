// Rows of the option table: who drafts, and how far.
import { ACCEPTANCE_TEXT, acceptanceOf } from "./acceptance_option.ts";
import { DRAFTER_TEXT, drafterOf, DRAFTERS, MODEL_DRAFTERS } from "./drafter_option.ts";
import { POLICIES } from "../../speculate/policies/registry.ts";
import { MOST_STEPS } from "../../speculate/round_shape.ts";

/** Names that `--policy` takes. */
export const POLICY_NAMES: readonly string[] = Object.keys(POLICIES);
export const POLICY_TEXT: string = POLICY_NAMES.join(", ");

/** Which kind of draft model. */
export const DRAFT_MODEL = {
  drafter: {
    flag: "--drafter",
    type: "text",
    words: MODEL_DRAFTERS as readonly string[],
    valid: ((text) => drafterOf(text, MODEL_DRAFTERS) !== undefined) as (text: string) => boolean,
    allows: `one of ${MODEL_DRAFTERS.join(", ")}` as string,
    help:
      "kind of draft; NEXTN: the layer of DeepSeek-V3 checkpoints that predicts one token further; STANDALONE: a small model of the same vocabulary",
    absent: "read from the draft checkpoint",
    example: "--drafter EAGLE3",
  },
} as const;

export const SPECULATION = {
  drafter: {
    flag: "--drafter",
    type: "text",
    words: DRAFTERS as readonly string[],
    valid: ((text) => drafterOf(text) !== undefined) as (text: string) => boolean,
    allows: DRAFTER_TEXT as string,
    help:
      "who drafts: an EAGLE head; NEXTN, the layer of DeepSeek-V3 checkpoints that predicts one token further; STANDALONE, a small model of the same vocabulary; NGRAM or SUFFIX, from the text alone (:min=N,max=N tokens must and may match); HYBRID, head or text, whichever promises more",
    absent: "read from the draft checkpoint; NGRAM and HYBRID match 1 to 12 tokens",
    example: "--drafter NGRAM:min=2,max=5",
  },
  numSteps: {
    flag: "--num-steps",
    common: true,
    type: "integer",
    min: 0,
    max: MOST_STEPS as number,
    help: "tokens drafted a round; 0 = no speculation; the text is the same for all",
    absent: "3, or where the policy begins",
    example: "--num-steps 5",
  },
  draftTree: {
    flag: "--draft-tree",
    type: "text",
    help:
      "draft a tree instead of a chain: STEPS:TOPK:TOKENS (levels, candidates of each drafted token, rows that are verified); topk=N,tokens=N beside --num-steps; EAGLE's total_token=60,depth=7,top_k=10; or auto, SGLang's for the architecture",
    absent: "a chain; tokens: 8 or num-steps + 1, 12 with NGRAM, SUFFIX, HYBRID",
    example: "--draft-tree 5:4:8",
  },
  tokenMap: {
    flag: "--token-map",
    type: "file",
    help:
      "tokens that an EAGLE-1/2 draft scores, most frequent first (FR-Spec): a .pt, .safetensors or .json, also org/name/FILE of the hub",
    absent: "all",
    example: "--token-map freq_32768.pt",
  },
  acceptance: {
    flag: "--acceptance",
    type: "text",
    words: ["exact", "token", "block", "relaxed:single=", "relaxed:acc="] as readonly string[],
    valid: ((text) => acceptanceOf(text) !== undefined) as (text: string) => boolean,
    allows: ACCEPTANCE_TEXT as string,
    help:
      "exact: drafts that the target chooses too; token, block: rejection sampling of a STANDALONE draft's chains, token by token or as a whole, lossless, but the text is no function of the seed alone; relaxed: when sampling also drafts of at least the probability single, or p / acc for a probability p, NOT LOSSLESS below 1",
    absent: "exact",
    example: "--temperature 1 --acceptance relaxed:single=0.3,acc=0.5",
  },
  policy: {
    flag: "--policy",
    type: "text",
    words: POLICY_NAMES as readonly string[],
    help:
      `chooses how far each round drafts: NAME or NAME:key=value,..., a value maybe a list as in steps=0/1/3; config=FILE is an adaptive config in SGLang's JSON format, or conservative or aggressive; the text is the same for all; there are ${POLICY_TEXT}` as string,
    absent: "static",
    example: "--policy ema:config=aggressive",
  },
  elasticDraft: {
    flag: "--elastic-draft",
    type: "switch",
    help:
      "while the policy drafts nothing and requests wait for KV pages, give them the draft's memory; it comes back when it is wanted",
  },
} as const;
