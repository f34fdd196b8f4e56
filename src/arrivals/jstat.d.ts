// The part of jstat that arrivals use; the package ships no types.
declare const jstat: {
  readonly gamma: {
    /** Quantile of the gamma distribution. */
    inv(p: number, shape: number, scale: number): number;
  };
};
// deno-lint-ignore eyrie/named-exports -- the package has no other export
export default jstat;
