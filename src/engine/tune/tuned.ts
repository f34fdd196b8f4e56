import { isLaunch } from "../../../kernels/matmul/matmul_tune.ts";
import { tensorShards } from "../../../kernels/matmul/tensor/common.ts";
import type { Gpu } from "../../gpu/device.ts";
import { roundMatrices } from "../../gpu/matrices_on_units.ts";
import { type Launches, type Tuning, tuning } from "../../gpu/tuning.ts";
import { autotune } from "./autotune.ts";
import { joinedKey, joinedMlps, timeJoined } from "./joined.ts";
import { groupMatmuls, type MatmulGroup, matmulsOf } from "../matrices/matmuls.ts";
import type { LoadedWeights } from "../device/models.ts";
import { adapterKey, driverVersion, readTuning, tuningPath, writeTuning } from "./tuning_file.ts";

/** Launches by rule (off), measured where they were not before (on), or all once more (again). */
export type AutotuneChoice = "on" | "off" | "again";

/** What tuning did, for `--stats`. */
export interface TunedReport {
  /** Shapes at a row count: known from the cache, measured now, left to the rules for now. */
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
    : readTuning(path, onWarning).get(key);
  const known = usable(gpu, groups, cached ?? new Map());
  const tuned = await autotune(gpu, groups, { tuning: rules, known });
  const joined = await joinedLaunches(gpu, loaded, {
    rules,
    launches: tuned.launches,
    known: cached ?? new Map(),
  });
  const measured = tuned.measured + joined.measured;
  const launches = new Map([...tuned.launches, ...joined.launches]);
  if (path !== undefined && measured > 0) writeTuning(path, key, launches, onWarning);
  const total = [...launches.values()].reduce((sum, rows) => sum + rows.size, 0);
  return {
    weights: { ...loaded, launches },
    report: {
      known: total - measured,
      measured,
      left: tuned.left,
      ms: performance.now() - started,
    },
  };
}

/**
 * Looks up or measures whether the target's MLPs run as one launch; empty if none of them may. `launches` are those of
 * the separate matmuls.
 */
async function joinedLaunches(
  gpu: Gpu,
  loaded: LoadedWeights,
  { rules, launches, known }: {
    readonly rules: Tuning;
    readonly launches: Launches;
    readonly known: Launches;
  },
): Promise<{ readonly launches: Launches; readonly measured: number }> {
  const mlps = joinedMlps(loaded, { ...rules, tensor: roundMatrices(loaded.tensor) });
  if (!mlps[0]) return { launches: new Map(), measured: 0 };
  const key = joinedKey(mlps[0]);
  const before = known.get(key);
  return before ? { launches: new Map([[key, before]]), measured: 0 } : {
    launches: new Map([[key, new Map([[1, await timeJoined(gpu, mlps, { ...rules, launches })]])]]),
    measured: 1,
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
