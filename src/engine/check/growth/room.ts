/** Which points of growth a machine has room for, before anything is loaded. */
import { UsageError } from "../../../errors.ts";
import { type DeviceInfo, openGpu } from "../../../gpu/device.ts";
import { gpuMemory } from "../../../gpu/memory.ts";
import { PAGE } from "../../../model/device_layout.ts";
import { chain, chains } from "../../../speculate/round_shape.ts";
import { bytesText } from "../../../text/numbers.ts";
import { openModels } from "../../load/load.ts";
import { type MemoryNeed, openPaper } from "../../load/paper.ts";
import { openRandomModels } from "../../load/random_models.ts";
import type { MakePlan } from "../../drafting.ts";
import { allLayers, capacityOf } from "../../load/sizes.ts";
import type { Machine } from "../../open.ts";
import type { EngineOptions, LimitOptions } from "../../options.ts";
import { staticPlan } from "../../schedule/speculation_choice.ts";
import { type GrowthPoint, pointCells } from "./growth.ts";

/** A model on an adapter. */
export interface GrowthRoom extends Disposable {
  readonly device: DeviceInfo;
  /** Tokens of the longest context that a round of one row can be measured at. */
  readonly longest: number;
  /** What an engine for this point alone takes of the GPU's memory. */
  needOf(point: GrowthPoint): Omit<MemoryNeed, "buffers">;
  /** Why a point cannot be measured; undefined where it can, as far as is known. */
  faultOf(point: GrowthPoint): string | undefined;
}

/** How an engine is opened in which all of these points can be measured. */
export function enginesSizes(
  points: readonly GrowthPoint[],
): Required<Pick<LimitOptions, "maxBatch" | "maxKvTokens" | "contextLength">> & {
  readonly depths: readonly number[];
} {
  const most = (of: (point: GrowthPoint) => number) => Math.max(...points.map(of));
  const cells = (point: GrowthPoint) => Math.ceil(pointCells(point) / PAGE) * PAGE;
  return {
    maxBatch: most(({ batch }) => batch),
    maxKvTokens: most((point) => point.batch * cells(point)),
    contextLength: most(pointCells),
    depths: [...new Set([0, ...points.map(({ rows }) => rows - 1)])].toSorted((a, b) => a - b),
  };
}

/** An engine's plan for these points; no program is made before it is wanted. */
export function growthPlan(points: readonly GrowthPoint[]): MakePlan {
  const plan = staticPlan(chain(0), chains(enginesSizes(points).depths));
  return () => ({ ...plan, warmed: [] });
}

/**
 * Reads the configs and asks the adapter; both are closed again.
 *
 * @throws UsageError where a model cannot be used or there is no adapter.
 */
export async function growthRoom(
  { model = {}, device = {}, limits: given = {}, speculation = {} }: EngineOptions,
  machine: Machine = { openGpu, gpuMemory },
): Promise<GrowthRoom> {
  using stack = new DisposableStack();
  const models = stack.use(
    model.random ? openRandomModels(model.random, model.algorithm) : openModels(model),
  );
  using gpu = await machine.openGpu(device);
  const { info, limits, matrixUnit } = gpu;
  const adapter = { info, limits, matrixUnit };
  const memory = await machine.gpuMemory(info, Infinity);
  const { maxPositions } = models.target.config;
  const capacity = (point: GrowthPoint) => {
    const { depths, ...sizes } = enginesSizes([point]);
    return capacityOf(
      { ...model, ...given, ...sizes, rejection: speculation.rejection, tiers: chains(depths) },
      adapter,
      allLayers(models),
    );
  };
  const { elasticDraft } = given;
  const paper = openPaper(models, { ...model, precision: device.precision, elasticDraft }, adapter);
  const needOf = (point: GrowthPoint) => {
    const { buffers: _, ...need } = paper.need(capacity(point));
    return need;
  };
  const owned = stack.move();
  return {
    device: info,
    longest: maxPositions - pointCells({ context: 1, rows: 1 }) + 1,
    needOf,
    faultOf(point) {
      const cells = pointCells(point);
      if (cells > maxPositions) {
        return `the model has ${maxPositions} positions, of which ${cells} are needed`;
      }
      const { maxKvTokens } = enginesSizes([point]);
      if (capacity(point).pages * PAGE < maxKvTokens) {
        return `a layer's keys of ${maxKvTokens} tokens are more than the adapter binds`;
      }
      try {
        const { total } = needOf(point);
        if (memory === undefined || total <= memory.free) return undefined;
        return `it takes ${bytesText(total)}, the GPU has ${bytesText(memory.free)} free of ` +
          bytesText(memory.total);
      } catch (error) {
        if (error instanceof UsageError) return error.message; // it does not fit a binding
        throw error;
      }
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}
