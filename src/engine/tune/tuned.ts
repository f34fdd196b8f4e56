import { isLaunch } from "../../../kernels/matmul/matmul_tune.ts";
import { tensorShards } from "../../../kernels/matmul/tensor/common.ts";
import type { Gpu } from "../../gpu/device.ts";
import { roundMatrices } from "../../gpu/matrices_on_units.ts";
import { type Launches, tuning } from "../../gpu/tuning.ts";
import { autotune } from "./autotune.ts";
import { joinedKey, joinedMlps, timeJoined } from "./joined.ts";
import { groupMatmuls, type MatmulGroup, matmulsOf } from "../matrices/matmuls.ts";
import type { LoadedWeights } from "../device/models.ts";
import { adapterKey, driverVersion, readTuning, tuningPath, writeTuning } from "./tuning_file.ts";

/** Launches by rule (off), measured where they were not before (on), or all once more (again). */
export type AutotuneChoice = "on" | "off" | "again";

/** What tuning did, for `--stats`. */
export interface TunedReport {
  /** Shapes at a row count and of MLPs: known from the cache, measured now, left to the rules for now. */
  readonly known: number;
  readonly measured: number;
  readonly left: number;
  readonly ms: number;
}

/** Loaded weights with the launches of their matmuls. */
export interface TunedWeights {
  readonly weights: LoadedWeights;
  /** Undefined where the rules decide: switched off, or a software adapter. */
  readonly report: TunedReport | undefined;
}

/**
 * Looks the launches of the weights' matmuls up in the cache and measures those it lacks.
 *
 * @param options.path of the cache; undefined = none is kept.
 */
export async function tuneWeights(
  gpu: Gpu,
  loaded: LoadedWeights,
  { autotune: choice = "off", onWarning = () => {}, path = tuningPath() }: {
    readonly autotune?: AutotuneChoice;
    readonly onWarning?: (line: string) => void;
    readonly path?: string | undefined;
  },
): Promise<TunedWeights> {
  if (choice === "off" || gpu.info.software) return { weights: loaded, report: undefined };
  const started = performance.now();
  const rules = tuning(false, gpu.limits, gpu.info.backend);
  const tensor = roundMatrices(loaded.tensor);
  const groups = groupMatmuls(
    matmulsOf(loaded, rules).filter(({ matrix }) => !tensorShards(matrix, tensor)),
  );
  const key = adapterKey(gpu.info, driverVersion());
  const cached = path === undefined || choice === "again"
    ? undefined
    : readTuning(path, key, onWarning);
  const known = usable(gpu, groups, cached?.launches ?? new Map());
  const tuned = await autotune(gpu, groups, { tuning: rules, known });
  const { launches } = tuned;
  const mlps = joinedMlps(loaded, { ...rules, tensor });
  const shape = mlps[0] ? joinedKey(mlps[0]) : "";
  const before = cached?.joined.get(shape);
  const joinsMlp = mlps[0] && (before ?? await timeJoined(gpu, mlps, { ...rules, launches }));
  const joined = new Map(joinsMlp === undefined ? [] : [[shape, joinsMlp]]);
  const measured = tuned.measured + (before === undefined ? joined.size : 0);
  if (path !== undefined && measured > 0) writeTuning(path, key, { launches, joined }, onWarning);
  const total = [...launches.values()].reduce((sum, rows) => sum + rows.size, joined.size);
  return {
    weights: { ...loaded, launches, joinsMlp },
    report: {
      known: total - measured,
      measured,
      left: tuned.left,
      ms: performance.now() - started,
    },
  };
}

/** Returns those launches of a cache that fit these matmuls: a file that was edited may have others. */
function usable(
  { limits, info }: Pick<Gpu, "limits" | "info">,
  groups: readonly MatmulGroup[],
  cached: Launches,
): Launches {
  const rules = tuning(false, limits, info.backend);
  return new Map(groups.map(({ key, matmuls: [{ matrix, splitK }] }) => {
    const fitting = [...cached.get(key) ?? []].filter(([rows, launch]) =>
      isLaunch(launch, matrix, { rows, splitK, tuning: rules }, limits)
    );
    return [key, new Map(fitting)];
  }));
}
