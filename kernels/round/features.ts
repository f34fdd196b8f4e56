import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

interface FeaturesParameters {
  /** Whether kept features are loaded, and not stored. */
  readonly LOADS: boolean;
}

const FEATURES = kernelOf<FeaturesParameters>("round/features");

const STORE = FEATURES({ LOADS: false }, {
  name: "store_features",
  bindings: ["features", "rows", "pages", "store"],
  constants: ["COLS", "TABLE_PAGES"],
});
const LOAD = FEATURES({ LOADS: true }, {
  name: "load_features",
  bindings: ["store", "rows", "pages", "features"],
  constants: ["COLS", "TABLE_PAGES"],
});

interface FeatureBuffers {
  readonly features: Operand;
  readonly rows: Operand;
  readonly pages: Operand;
  /** [pages, PAGE, cols] */
  readonly store: Operand;
}

interface FeatureShape {
  readonly count: number;
  readonly cols: number;
  readonly tablePages: number;
}

/** Records: keep the features of `count` rows by their cells. */
export function storeFeatures(buffers: FeatureBuffers, shape: FeatureShape): Dispatch {
  return dispatch(STORE, { buffers, ...launch(shape) });
}

/** Records: fetch the features of `count` rows that were kept. */
export function loadFeatures(buffers: FeatureBuffers, shape: FeatureShape): Dispatch {
  return dispatch(LOAD, { buffers, ...launch(shape) });
}

function launch({ count, cols, tablePages }: FeatureShape) {
  return {
    constants: { COLS: cols, TABLE_PAGES: tablePages },
    workgroups: [Math.ceil(cols / 64), count] as const,
    work: { bytes: 2 * 4 * count * cols, flops: 0 },
  };
}
