// The part of jstat that is used; the package ships no types.
declare const jstat: {
  readonly studentt: {
    /** Quantile of Student's t distribution. */
    inv(p: number, freedom: number): number;
  };
};
// deno-lint-ignore eyrie/named-exports -- the package has no other export
export default jstat;
