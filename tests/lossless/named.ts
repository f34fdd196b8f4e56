/** Configurations in which a text was once another one, or none came; they are in every run. */
import type { Case } from "./axes.ts";

/** The axes that a defect had nothing to do with. */
const REST: Case = {
  drafter: "EAGLE3",
  shape: "3",
  policy: "static",
  maxBatch: 4,
  roundsPerSync: 8,
  numbers: "bf16, f32",
  kernels: "software",
  requests: "mixed",
  pages: "enough",
  promptRows: "usual",
  groups: "one",
  prefixCache: true,
  elasticDraft: false,
  prediction: "none",
  arrival: "together",
  ownSteps: "no",
};

export const PREEMPTED = "penalties of a preempted request are counted again";

export const NAMED: Readonly<Record<string, Case>> = {
  [PREEMPTED]: {
    ...REST,
    requests: "penalized",
    pages: "few",
    prefixCache: false,
    roundsPerSync: 1,
  },
  "requests without drafts share a batch, and nothing is there to catch up": {
    ...REST,
    ownSteps: "none",
    arrival: "one by one",
    roundsPerSync: 1,
  },
  "a stop text that is complete with the last token": {
    ...REST,
    drafter: "NGRAM",
    requests: "greedy",
    shape: "7",
  },
  "a row of a tree adds its cells in the order of its path": {
    ...REST,
    drafter: "EAGLE",
    shape: "5:4:8",
    // The sums' order is in the last bits, which seldom choose another token.
    requests: "logprobs",
    roundsPerSync: "auto",
  },
  "weights of 4 bits beside keys and values of 16 bits, on hardware": {
    ...REST,
    numbers: "q4, bf16",
    kernels: "hardware",
    requests: "greedy",
    maxBatch: 1,
    roundsPerSync: 1,
  },
  "a grammar's forced tokens while the draft is away": {
    ...REST,
    policy: "restless",
    elasticDraft: true,
    requests: "constrained",
    pages: "few",
    roundsPerSync: 1,
  },
  "a tier that changes while several rounds are submitted at once": {
    ...REST,
    policy: "restless",
    drafter: "EAGLE",
    shape: "7",
    roundsPerSync: "auto",
    arrival: "some leave",
  },
};
