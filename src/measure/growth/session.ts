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
import { type LocalEngine, openEngine } from "../../engine/open.ts";
import type { EngineOptions } from "../../engine/options.ts";
import type { PointEvent } from "../point_event.ts";
import { requestedName, subjectOf } from "../bench_engine.ts";
import { type GivenGrowthAxes, growthAxes, type GrowthAxis, growthSeries } from "./points.ts";
import { type GrowthRow, prefillRow, roundRow } from "./row.ts";

/** The models and the points of a growth measurement. */
export interface GrowthRequest {
  readonly models: readonly EngineOptions[];
  readonly axes: GivenGrowthAxes;
  /** Rounds measured at each point; four times as many on a hardware adapter. */
  readonly repeat: number;
  /** 10^9 bytes per second; measured if absent. */
  readonly bandwidth?: number;
  readonly signal: AbortSignal;
}

export type GrowthEvent = PointEvent<GrowthRow>;

/** Measures growth; yields events until all points are measured. */
export type Growth = (request: GrowthRequest) => AsyncGenerator<GrowthEvent>;

/** The most tokens of a prefill that is measured at each context. */
const PROMPT = 512;
/** The same on a software adapter: one chunk. */
const SOFTWARE_PROMPT = 64;
const HARDWARE_ROUNDS = 4;

/**
 * Measures each axis of each model. An engine is opened for each axis, with no more memory than its points need. When
 * the signal aborts, the point in flight is the last one.
 */
export async function* growth(request: GrowthRequest): AsyncGenerator<GrowthEvent> {
  let { bandwidth } = request;
  for (const model of request.models) {
    using room = await growthRoom(model);
    const axes = growthAxes(request.axes, { ...room.device, longest: room.longest });
    const series = growthSeries(axes).map(({ axis, points }) => ({
      axis,
      ...Object.groupBy(points, (point) => room.faultOf(point) === undefined ? "fit" : "over"),
    }));
    for (const { axis, over = [] } of series) {
      for (const point of over) yield skipped(model, axis, point, room.faultOf(point) ?? "");
    }
    const total = series.reduce((sum, { fit = [] }) => sum + fit.length, 0);
    let done = 0;
    for (const { axis, fit = [] } of series) {
      const { engine, left, dropped } = await openFitting(model, room, fit, request.signal);
      using _closed = engine;
      done += dropped.length;
      for (const point of dropped) yield skipped(model, axis, point, "the GPU ran out of memory");
      if (engine === undefined) continue;
      bandwidth ??= await bandwidthOf(engine);
      const run = { engine, room, model, axis, bandwidth, request };
      for (const point of left) {
        if (request.signal.aborted) return;
        yield { kind: "point", text: nameOf(model, axis, point), done: done++, total };
        for (const row of await rowsOf(point, run)) yield { kind: "row", row };
      }
    }
  }
}

function skipped(
  model: EngineOptions,
  axis: GrowthAxis,
  point: GrowthPoint,
  why: string,
): GrowthEvent {
  return { kind: "skipped", what: nameOf(model, axis, point), why };
}

/** The name of a point in messages: the model as it was requested, and the value on the axis. */
function nameOf(model: EngineOptions, axis: GrowthAxis, point: GrowthPoint) {
  return `${requestedName(model)}, ${axis} ${point[axis]}`;
}

interface Fitting {
  /** Undefined if not even the smallest point fits, or the signal aborted. */
  readonly engine: LocalEngine | undefined;
  readonly left: readonly GrowthPoint[];
  readonly dropped: readonly GrowthPoint[];
}

/** Opens an engine for all points, or without the largest ones if there is not enough memory. */
async function openFitting(
  model: EngineOptions,
  room: GrowthRoom,
  points: readonly GrowthPoint[],
  signal: AbortSignal,
): Promise<Fitting> {
  const sizeOf = (point: GrowthPoint) => room.needOf(point).total;
  const rising = points.toSorted((a, b) => sizeOf(a) - sizeOf(b));
  for (let count = rising.length; count > 0 && !signal.aborted; count--) {
    const [left, dropped] = [rising.slice(0, count), rising.slice(count)];
    const engine = await opened(model, left);
    if (engine) return { engine, left: points.filter((each) => left.includes(each)), dropped };
  }
  return { engine: undefined, left: [], dropped: signal.aborted ? [] : points };
}

/** The opened engine; undefined if the GPU ran out of memory. */
async function opened(
  model: EngineOptions,
  points: readonly GrowthPoint[],
): Promise<LocalEngine | undefined> {
  const { depths: _, ...sizes } = enginesSizes(points);
  try {
    const engine = await openEngine({
      ...model,
      device: { ...model.device, profile: true },
      limits: { ...model.limits, ...sizes, preparePrompts: true, prefixCache: false },
      hooks: { ...model.hooks, plan: growthPlan(points) },
    });
    await fillCells(engine.runner);
    return engine;
  } catch (error) {
    if (ranOutOfMemory(error)) return undefined;
    throw error;
  }
}

async function bandwidthOf({ runner }: LocalEngine): Promise<number | undefined> {
  if (!runner.gpu.info.features.includes("timestamp-query")) return undefined;
  using profiler = await openCoreProfiler(runner);
  return await profiler.readBandwidth();
}

interface Run {
  readonly engine: LocalEngine;
  readonly room: GrowthRoom;
  readonly model: EngineOptions;
  readonly axis: GrowthAxis;
  readonly bandwidth: number | undefined;
  readonly request: GrowthRequest;
}

/** The row of the rounds at a point, and in a series of contexts that of the prefill which ends there. */
async function rowsOf(point: GrowthPoint, run: Run): Promise<GrowthRow[]> {
  const { engine: { runner, chunkRows }, engine, room, axis, bandwidth, model } = run;
  const { request: { repeat, signal } } = run;
  const { software } = runner.gpu.info;
  const subject = subjectOf(engine, model);
  const place = { subject, axis, point, bandwidth, memory: room.needOf(point) };
  const times = software ? repeat : repeat * HARDWARE_ROUNDS;
  const samples = await measureRounds(runner, point, { times, signal });
  const rows = samples && samples.rounds.length > 0 ? [roundRow(samples, place)] : [];
  const count = Math.min(point.context, software ? SOFTWARE_PROMPT : PROMPT);
  if (axis !== "context" || count === 0 || signal.aborted) return rows;
  const prefill = await measurePrefill(runner, {
    context: point.context,
    count,
    chunkRows,
    signal,
    times: software ? 1 : Math.min(repeat, 3),
  });
  return prefill && prefill.ms.length > 0 ? [...rows, prefillRow(prefill, place)] : rows;
}
