/** SGLang's default of its newest format, as its file would say it. */
export const SGLANG_DEFAULT: Readonly<Record<string, object>> = {
  "1": { candidate_steps: [1, 3, 5, 7], up_hysteresis: 0, down_hysteresis: -0.25 },
  "8": { candidate_steps: [0, 1, 3], up_hysteresis: 0, down_hysteresis: 0 },
  "32": { candidate_steps: [0, 1], up_hysteresis: 0, down_hysteresis: 0 },
  "64": { candidate_steps: [0], up_hysteresis: 0, down_hysteresis: 0 },
};
