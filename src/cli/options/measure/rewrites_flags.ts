/** A table of what each rewrite of lowering saves. */
export const BENCH_REWRITES = {
  rewrites: {
    flag: "--rewrites",
    type: "switch",
    help:
      "what each rewrite of a model's graph saves: device time of rounds (--rows, --batch-sizes, --depth) and of a prompt's chunk of 256, with all of them and without one",
    example: "--rewrites --rows 1,4",
  },
} as const;
