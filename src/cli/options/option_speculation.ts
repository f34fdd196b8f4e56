// Rows of the option table: who drafts, and how far.
import { POLICIES } from "../../speculate/policies/registry.ts";
import { MOST_STEPS } from "../../speculate/round_shape.ts";

/** Names that `--policy` takes. */
export const POLICY_NAMES: readonly string[] = Object.keys(POLICIES);
export const POLICY_TEXT: string = POLICY_NAMES.join(", ");

/** Kinds of draft models. */
export const DRAFT_ALGORITHM = {
  algorithm: {
    flag: "--speculative-algorithm",
    type: "choice",
    choices: ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NONE"],
    help:
      "kind of draft; NEXTN: the layer of DeepSeek-V3 checkpoints that predicts one token further; STANDALONE: a small model of the same vocabulary",
    absent: "read from the draft checkpoint",
    example: "--speculative-algorithm EAGLE3",
  },
} as const;

export const SPECULATION = {
  algorithm: {
    flag: "--speculative-algorithm",
    type: "choice",
    choices: ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "SUFFIX", "HYBRID", "NONE"],
    help:
      "kind of draft (NEXTN: the layer of DeepSeek-V3 checkpoints that predicts one token further); STANDALONE: a small model of the same vocabulary; NGRAM, SUFFIX: from the text alone; HYBRID: head or text, whichever promises more",
    absent: "read from the draft checkpoint",
    example: "--speculative-algorithm SUFFIX",
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
  ngramMin: {
    flag: "--ngram-min",
    type: "integer",
    min: 1,
    max: 64,
    help: "last tokens that must occur before, with NGRAM and HYBRID",
    absent: "1",
    example: "--ngram-min 2",
  },
  ngramMax: {
    flag: "--ngram-max",
    type: "integer",
    min: 1,
    max: 64,
    help: "last tokens that are looked for; the longest match is taken",
    absent: "12",
    example: "--ngram-max 5",
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
  rejection: {
    flag: "--speculative-rejection",
    type: "switch",
    help:
      "verify a STANDALONE draft's chains by rejection sampling: lossless, but the text is no function of the seed alone",
  },
  blockVerification: {
    flag: "--speculative-block-verification",
    type: "switch",
    help: "the same, but verify each chain as one block: it accepts at least as many drafts",
  },
  acceptSingle: {
    flag: "--speculative-accept-threshold-single",
    type: "number",
    min: 0,
    max: 1,
    help:
      "when sampling, accept a draft that has at least this probability; below 1 NOT LOSSLESS: the text is no longer the model's own",
    absent: "1",
    example: "--temperature 1 --speculative-accept-threshold-single 0.3",
  },
  acceptAcc: {
    flag: "--speculative-accept-threshold-acc",
    type: "number",
    min: 0,
    max: 1,
    help:
      "when sampling, accept a draft of probability p as if it were p / this; below 1 NOT LOSSLESS",
    absent: "1",
    example: "--temperature 1 --speculative-accept-threshold-acc 0.5",
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
