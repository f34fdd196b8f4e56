// Rows of the option table: who drafts, and how far.
import { ACCEPTANCE_TEXT, acceptanceOf } from "./acceptance_option.ts";
import { DRAFTER_TEXT, drafterOf, DRAFTERS, MODEL_DRAFTERS, RANGED } from "./drafter_option.ts";
import { POLICIES } from "../../speculate/policies/registry.ts";
import { MAX_STEPS } from "../../speculate/round_shape.ts";

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
      "kind of draft model; NEXTN is the multi-token prediction layer of DeepSeek-V3 checkpoints, STANDALONE a small model with the same vocabulary",
    absent: "the kind of the draft checkpoint",
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
      "drafter: EAGLE or EAGLE3, a head on the target's hidden states; NEXTN, the multi-token prediction layer of DeepSeek-V3 checkpoints; STANDALONE, a small model with the same vocabulary; NGRAM or SUFFIX, which copy what followed the same tokens earlier in the text (for NGRAM, :min=N,max=N bounds how many tokens have to match); HYBRID, the head or such a copy, whichever is expected to be accepted further",
    absent: `the kind of the draft checkpoint; ${RANGED} have min=1,max=12` as string,
    example: "--drafter NGRAM:min=2,max=5",
  },
  numSteps: {
    flag: "--num-steps",
    common: true,
    type: "integer",
    min: 0,
    max: MAX_STEPS as number,
    help:
      "tokens that are drafted in a round; 0 is plain decoding; the text is the same for every value",
    absent: "3, or the first choice of the policy",
    example: "--num-steps 5",
  },
  draftTree: {
    flag: "--draft-tree",
    type: "text",
    help:
      "draft a tree instead of a chain. STEPS:TOPK:TOKENS: levels of the tree, candidates of each node, and rows that are verified. topk=N,tokens=N: the same with the levels from --num-steps. total_token=60,depth=7,top_k=10: the same in EAGLE's words. auto: the tree that SGLang has for the architecture",
    absent:
      "a chain; for topk=N without tokens, 8 tokens or num-steps + 1 if that is more; 12 for drafts from the text",
    example: "--draft-tree 5:4:8",
  },
  tokenMap: {
    flag: "--token-map",
    type: "file",
    help:
      "list of the tokens that an EAGLE-1 or EAGLE-2 draft scores, most frequent first (FR-Spec): a .pt, .safetensors or .json file, or org/name/FILE on the hub",
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
      "which drafts are accepted. exact: those that the target chooses too. token, block: rejection sampling of the chain of a STANDALONE draft, token by token or as one block; lossless, but the text depends on more than the seed. relaxed: when sampling, also drafts whose probability p is at least single, and others with chance p / acc; NOT LOSSLESS if one of them is below 1",
    absent: "exact",
    example: "--temperature 1 --acceptance relaxed:single=0.3,acc=0.5",
  },
  policy: {
    flag: "--policy",
    type: "text",
    words: POLICY_NAMES as readonly string[],
    help:
      `policy that chooses how many tokens each round drafts: NAME, or NAME:key=value,... in which a value may be a list, as in steps=0/1/3; config=FILE reads an adaptive config in SGLang's JSON format, config=conservative or aggressive a preset; the text is the same for every policy; names: ${POLICY_TEXT}` as string,
    absent: "static",
    example: "--policy ema:config=aggressive",
  },
  elasticDraft: {
    flag: "--elastic-draft",
    type: "switch",
    help:
      "while the policy does not draft and requests wait for KV pages, free the draft's memory for them; the draft is loaded again when the policy wants it",
  },
} as const;
