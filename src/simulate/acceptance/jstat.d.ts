// The part of jstat that acceptance models use; the package ships no types.
declare const jstat: {
  readonly beta: {
    /** Quantile of the beta distribution. */
    inv(p: number, a: number, b: number): number;
  };
};
// deno-lint-ignore eyrie/named-exports -- the package has no other export
export default jstat;
