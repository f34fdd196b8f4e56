/** Sizes of what a mixture's plans write. */
import { tileWords } from "../../../kernels/experts/experts.ts";
import type { Tuning } from "../../gpu/matrix.ts";
import type { MatrixUnit } from "../../gpu/matrix_unit.ts";
import { type MixtureMlp, sharedExperts } from "../config/layer_config.ts";

/** u32 words of the lists of jobs of at most `rows` rows, whether the shared expert is stacked or not. */
export function mixtureTileWords(
  mlp: MixtureMlp,
  rows: number,
  { rules, unit }: {
    readonly rules: Pick<Tuning, "software" | "packedRows">;
    readonly unit: MatrixUnit | undefined;
  },
): number {
  const { topK, numExperts } = mlp.routing;
  const shared = sharedExperts(mlp);
  return Math.max(
    tileWords({ topK, numExperts, rows }, rules, unit),
    tileWords({ topK: topK + shared, numExperts: numExperts + shared, rows }, rules, unit),
  );
}
