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
      "for tokens that occur in prompt or output, divide a positive logit by this number and multiply a negative one; 1 is off",
    absent: "generation_config.json, else 1",
    example: "--repetition-penalty 1.1",
  },
  frequencyPenalty: {
    flag: "--frequency-penalty",
    type: "number",
    min: REQUEST_RANGES.frequencyPenalty.min as number,
    max: REQUEST_RANGES.frequencyPenalty.max as number,
    help:
      "subtracted from a token's logit once for each time that it occurs in the output; 0 is off",
    absent: "0",
    example: "--frequency-penalty 0.5",
  },
  presencePenalty: {
    flag: "--presence-penalty",
    type: "number",
    min: REQUEST_RANGES.presencePenalty.min as number,
    max: REQUEST_RANGES.presencePenalty.max as number,
    help: "subtracted from a token's logit if it occurs in the output; 0 is off",
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
    help:
      "with --json or --batch: write the log-probability of each token, and of the N most likely tokens at its position",
    absent: "none",
    example: "--json --logprobs 5",
  },
} as const;
