/** Progress of a measurement of points, one after the other. */
export type PointEvent<Row> =
  /** The next point to be measured; `done` of `total` points are finished. */
  | {
    readonly kind: "point";
    readonly text: string;
    readonly done: number;
    readonly total: number;
  }
  | { readonly kind: "row"; readonly row: Row }
  /** A point, or a whole model, that cannot be measured. */
  | { readonly kind: "skipped"; readonly what: string; readonly why: string };
