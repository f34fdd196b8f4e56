/** What `eyrie help TOPIC` knows, in the order in which it is listed: a line about each. */
export const TOPICS = {
  policies: "rules that choose how far each round drafts",
  trees: "drafting several candidates for each place",
  drafters: "who drafts: a head, a small model, the text itself",
  exactness: "why the text is the same with drafts and without",
  sampling: "how a token is chosen, and in which order",
  constrained: "JSON, regular expressions and grammars",
  server: "routes of eyrie serve, access and limits",
  gpu: "drivers, by system and vendor",
  environment: "variables that are read, and the config file",
  "exit-codes": "what a command's code means",
} as const;

export type Topic = keyof typeof TOPICS;
export const TOPIC_NAMES: readonly string[] = Object.keys(TOPICS);
