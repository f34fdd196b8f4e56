import { openCoreProfiler } from "../../engine/check/profile.ts";
import {
  type GrowthPoint,
  measurePrefill,
  measureRounds,
} from "../../engine/check/growth/growth.ts";
import { fillCells } from "../../engine/check/growth/random_cells.ts";
import {
  enginesSizes,
  growthPlan,
  type GrowthRoom,
  growthRoom,
} from "../../engine/check/growth/room.ts";
import { ranOutOfMemory } from "../../engine/load/fits.ts";
import { type Engine, openEngine } from "../../engine/open.ts";
import type { ModelRequest } from "../runner.ts";
import { modelOptions, subjectOf } from "../subject.ts";
import { type GrowthAsked, growthAxes, type GrowthAxis, growthSeries } from "./points.ts";
import { type GrowthRow, prefillRow, roundRow } from "./row.ts";

/** What a growth measures of each model. */
export interface GrowthRequest {
  readonly models: readonly ModelRequest[];
  readonly axes: GrowthAsked;
  /** Rounds of a point: four times as many on hardware. */
  readonly repeat: number;
  /** 10^9 bytes a second; measured where absent. */
  readonly bandwidth?: number;
  readonly signal: AbortSignal;
}

export type GrowthEvent =
  /** What is measured next; `done` of `total` points are. */
  | {
    readonly kind: "point";
    readonly text: string;
    readonly done: number;
    readonly total: number;
  }
  | { readonly kind: "row"; readonly row: GrowthRow }
  /** A point, or all of a model, that is left out. */
  | { readonly kind: "skipped"; readonly what: string; readonly why: string };

export type Growth = (request: GrowthRequest) => AsyncGenerator<GrowthEvent>;

/** Tokens of a prompt whose prefill is measured at each context, at most. */
const PROMPT = 512;
/** The same on a software adapter: a chunk. */
const SOFTWARE_PROMPT = 64;
const HARDWARE_ROUNDS = 4;

/**
 * Measures model after model, axis after axis: an engine is opened for each axis, with no more memory than
 * its points need. Ends after the point in flight where the signal aborts.
 */
export async function* growth(request: GrowthRequest): AsyncGenerator<GrowthEvent> {
  let bandwidth = request.bandwidth;
  for (const model of request.models) {
    using room = await growthRoom(modelOptions(model));
    const axes = growthAxes(request.axes, { ...room.device, longest: room.longest });
    const all = growthSeries(axes);
    const total = all.reduce((sum, { points }) => sum + points.length, 0);
    let done = 0;
    for (const { axis, points } of all) {
      const name = (point: GrowthPoint) => `${nameOf(model)}, ${axis} ${point[axis]}`;
      let left = [...points];
      for (const point of points) {
        const why = room.faultOf(point);
        if (why === undefined) continue;
        left = left.filter((each) => each !== point);
        yield { kind: "skipped", what: name(point), why };
      }
      while (left.length > 0 && !request.signal.aborted) {
        const engine = await opened(model, left);
        if (engine === undefined) {
          const largest = left.toSorted((a, b) => bytesAt(room, a) - bytesAt(room, b)).at(-1);
          left = left.filter((each) => each !== largest);
          if (largest) {
            yield { kind: "skipped", what: name(largest), why: "the GPU ran out of memory" };
          }
          continue;
        }
        using _closed = engine;
        bandwidth ??= await bandwidthOf(engine);
        const run = { engine, room, model, axis, bandwidth, request };
        for (const point of left) {
          if (request.signal.aborted) return;
          yield { kind: "point", text: name(point), done: done++, total };
          for (const row of await rowsOf(point, run)) yield { kind: "row", row };
        }
        left = [];
      }
    }
  }
}

function bytesAt(room: GrowthRoom, point: GrowthPoint): number {
  return room.needOf(point).total;
}

/** What a model is called before it is opened. */
function nameOf({ randomWeights, model }: ModelRequest): string {
  return randomWeights ?? model ?? "fledgling";
}

/** Undefined where the GPU ran out of memory. */
async function opened(
  model: ModelRequest,
  points: readonly GrowthPoint[],
): Promise<Engine | undefined> {
  const { depths: _, ...sizes } = enginesSizes(points);
  try {
    const engine = await openEngine({
      ...modelOptions(model),
      ...sizes,
      speculate: growthPlan(points),
      profile: true,
      prefixCache: false,
    });
    await fillCells(engine.core);
    return engine;
  } catch (error) {
    if (ranOutOfMemory(error)) return undefined;
    throw error;
  }
}

async function bandwidthOf({ core }: Engine): Promise<number | undefined> {
  if (!core.gpu.info.features.includes("timestamp-query")) return undefined;
  using profiler = await openCoreProfiler(core);
  return await profiler.readBandwidth();
}

interface Run {
  readonly engine: Engine;
  readonly room: GrowthRoom;
  readonly model: ModelRequest;
  readonly axis: GrowthAxis;
  readonly bandwidth: number | undefined;
  readonly request: GrowthRequest;
}

/** The round of a point; in a series of contexts also the prefill that ends there. */
async function rowsOf(point: GrowthPoint, run: Run): Promise<GrowthRow[]> {
  const { engine: { core, chunkRows }, engine, room, axis, bandwidth, model } = run;
  const { request: { repeat, signal } } = run;
  const { software } = core.gpu.info;
  const subject = subjectOf(engine, model);
  const place = { subject, axis, point, bandwidth, memory: room.needOf(point) };
  const times = software ? repeat : repeat * HARDWARE_ROUNDS;
  const samples = await measureRounds(core, point, { times, signal });
  const rows = samples && samples.rounds.length > 0 ? [roundRow(samples, place)] : [];
  const count = Math.min(point.context, software ? SOFTWARE_PROMPT : PROMPT);
  if (axis !== "context" || count === 0 || signal.aborted) return rows;
  const prefill = await measurePrefill(core, {
    ...{ context: point.context, count, chunkRows, signal },
    times: software ? 1 : Math.min(repeat, 3),
  });
  return prefill && prefill.ms.length > 0 ? [...rows, prefillRow(prefill, place)] : rows;
}
