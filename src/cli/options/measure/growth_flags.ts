/** Tables and charts of what a round takes as context, batch and rows grow. */
export const BENCH_GROWTH = {
  growth: {
    flag: "--growth",
    type: "switch",
    help:
      "time, memory and host time of a round against context, batch, rows and model, beside what its bytes need; models are separated by commas",
    example: "--growth --depth 0,512,8192 --batch-sizes 1,8",
  },
  rows: {
    flag: "--rows",
    type: "axis",
    min: 1,
    // Drafts of the longest chain, MOST_STEPS, and the pending token.
    max: 17,
    whole: true,
    help:
      "rows that a round of --growth or --rewrites verifies of each request: drafts and one more",
    absent: "1,2,4,8,16, on software adapters up to 8; with --rewrites 1,4",
    example: "--rows 1,4,8",
  },
} as const;
