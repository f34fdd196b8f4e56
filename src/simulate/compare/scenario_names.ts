/** The names alone: every start of the program has them in its table of flags. */
export const SCENARIO_NAMES = [
  "phases-1",
  "phases-4",
  "phases-16",
  "phases-64",
  "phases-128",
  "walk",
  "bursty",
] as const;

export type ScenarioName = typeof SCENARIO_NAMES[number];
