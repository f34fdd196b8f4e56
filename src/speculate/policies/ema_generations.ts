/**
 * The adaptive configs that SGLang runs with where none is given, as their file would say it.
 *
 * - `doc`: of its documentation (PR #24055): three brackets, at least one step.
 * - `main`: of its source later on: 0 steps are a candidate, and large batches do not draft.
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
