// The rows of the option table that one tool alone has.

import { UsageError } from "../../errors.ts";
import { clash } from "./clash.ts";

export const CHECK = {
  expected: {
    flag: "--expected",
    type: "file",
    help:
      "safetensors file with input_ids and logits, and optionally hidden_states.N and greedy_ids, to compare with",
    absent: "with --quantize, the logits of the model without quantization",
    example: "--expected expected.safetensors",
  },
  tolerance: {
    flag: "--tolerance",
    type: "number",
    min: 0,
    max: 1000,
    default: 2e-3,
    help: "largest error that is allowed, in standard deviations of the logits",
    example: "--tolerance 0.01",
  },
} as const;

/** Flags of `check` that contradict each other or are not used. `given` has only what was typed, no defaults. */
export function refuseImpossibleCheck(given: Readonly<Record<string, unknown>>): void {
  const { expected, model, draft, draftRopeTheta, quantize, quantizeDraft, tolerance } = given;
  if (expected !== undefined) {
    const ofDraft = { quantizeDraft: "--quantize-draft", draftRopeTheta: "--draft-rope-theta" };
    for (const [key, flag] of Object.entries({ ...ofDraft, draft: "--draft" })) {
      if (given[key] !== undefined) clash(flag, "--expected", "only the target is compared");
    }
  } else if (tolerance !== undefined) {
    throw new UsageError('Cannot use "--tolerance": it needs --expected');
  }
  if (draftRopeTheta === undefined) return;
  if (draft !== undefined && quantize === undefined && quantizeDraft === undefined) {
    clash("--draft-rope-theta", "check --draft", "it measures which rope base fits");
  }
  if (draft === "none" || (draft === undefined && model !== undefined)) {
    throw new UsageError('Cannot use "--draft-rope-theta": it needs a draft; give --draft MODEL');
  }
}

export const CONVERT = {
  quantize: {
    flag: "--quantize",
    type: "choice",
    choices: ["q8", "q4"],
    help:
      "write the matrices as 8 or 4 bit integers, the same ones that --quantize of other commands makes at every start",
    absent: "as the checkpoint has them",
    example: "--quantize q4",
  },
  maxShardSize: {
    flag: "--max-shard-size",
    type: "number",
    min: 0,
    max: 1000,
    above: true,
    default: 4.5,
    help: "maximum size of a file in GB (10^9 bytes)",
    example: "--max-shard-size 2",
  },
  force: {
    flag: "--force",
    type: "switch",
    help: "replace a checkpoint that is in OUT already",
  },
} as const;

export const TOKEN_MAP = {
  size: {
    flag: "--size",
    type: "integer",
    min: 1,
    max: 1_000_000,
    default: 32_768,
    help: "number of tokens to keep, end-of-sequence tokens included",
    example: "--size 32768",
  },
  mapFile: {
    flag: "--output",
    type: "file",
    help: "the list to write, most frequent first, as .json or .safetensors; required",
    absent: "none",
    example: "--output map.json",
  },
} as const;

export const DOCTOR = {
  fix: {
    flag: "--fix",
    type: "switch",
    help:
      "if no Vulkan adapter is found, install Mesa's drivers (as root, on Debian and its derivatives)",
  },
} as const;

export const KNOWN = {
  known: {
    flag: "--known",
    type: "switch",
    help:
      "list models of the hub that Eyrie runs, with their sizes and drafts, and whether they fit this machine",
    example: "--known",
  },
} as const;

export const REMOVAL = {
  force: {
    flag: "--force",
    short: "-y",
    type: "switch",
    help: "remove without asking for confirmation",
  },
} as const;
