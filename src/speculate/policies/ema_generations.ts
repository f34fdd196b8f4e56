/**
 * The default adaptive configs of SGLang, as a config file would write them.
 *
 * - `doc`: from its documentation (PR #24055): three brackets, at least one step.
 * - `main`: from its later source: 0 steps are a candidate, and large batches do not draft.
 */
export const EMA_GENERATIONS: {
  readonly [generation in "main" | "doc"]: Readonly<Record<string, object>>;
} = {
  main: {
    "1": { candidate_steps: [1, 3, 5, 7], up_hysteresis: 0, down_hysteresis: -0.25 },
    "8": { candidate_steps: [0, 1, 3], up_hysteresis: 0, down_hysteresis: 0 },
    "32": { candidate_steps: [0, 1], up_hysteresis: 0, down_hysteresis: 0 },
    "64": { candidate_steps: [0], up_hysteresis: 0, down_hysteresis: 0 },
  },
  doc: {
    "1": { candidate_steps: [1, 3, 7], up_hysteresis: 0, down_hysteresis: -0.25 },
    "8": { candidate_steps: [1, 3], up_hysteresis: 0, down_hysteresis: 0 },
    "32": { candidate_steps: [1], up_hysteresis: 0, down_hysteresis: 0 },
  },
};
