// Rows of the option table: what changes logits before the temperature does, and which log-probabilities are reported.
import { REQUEST_RANGES } from "../../speculate/request_ranges.ts";

export const PENALTIES = {
  repetitionPenalty: {
    flag: "--repetition-penalty",
    type: "number",
    min: REQUEST_RANGES.repetitionPenalty.min as number,
    max: REQUEST_RANGES.repetitionPenalty.max as number,
    above: true,
    help:
      "tokens of prompt and output: logits above 0 are divided by it, others multiplied; 1 = off",
    absent: "generation_config.json, else 1",
    example: "--repetition-penalty 1.1",
  },
  frequencyPenalty: {
    flag: "--frequency-penalty",
    type: "number",
    min: REQUEST_RANGES.frequencyPenalty.min as number,
    max: REQUEST_RANGES.frequencyPenalty.max as number,
    help: "taken off a token's logit for each time that it is in the output; 0 = off",
    absent: "0",
    example: "--frequency-penalty 0.5",
  },
  presencePenalty: {
    flag: "--presence-penalty",
    type: "number",
    min: REQUEST_RANGES.presencePenalty.min as number,
    max: REQUEST_RANGES.presencePenalty.max as number,
    help: "taken off a token's logit where it is in the output; 0 = off",
    absent: "0",
    example: "--presence-penalty 0.5",
  },
  logitBias: {
    flag: "--logit-bias",
    type: "bias",
    help: "added to the logit of a token id; may be repeated",
    absent: "none",
    example: "--logit-bias 50256=-100",
  },
} as const;

export const LOGPROBS = {
  logprobs: {
    flag: "--logprobs",
    type: "integer",
    min: REQUEST_RANGES.logprobs.min as number,
    max: REQUEST_RANGES.logprobs.max as number,
    help: "with --json or --batch: each token's log-probability, and the N likeliest in its place",
    absent: "none",
    example: "--json --logprobs 5",
  },
} as const;
