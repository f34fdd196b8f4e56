import type {
  GrowthPoint,
  LeastWork,
  PointSamples,
  PrefillSamples,
} from "../../engine/check/growth/growth.ts";
import type { Subject } from "../runner.ts";
import { median } from "../statistics.ts";
import type { GrowthAxis } from "./points.ts";

/** Of rows written to a file; another number when a field changes its meaning. */
export const GROWTH_FORMAT = "eyrie-growth-1";

/** Bytes of the GPU's memory that an engine for a point takes, as predicted before it is loaded. */
export interface PredictedMemory {
  readonly weights: number;
  readonly kv: number;
  readonly scratch: number;
  readonly total: number;
}

/** A round at a point, or a prefill. The names are those of the files; times in milliseconds. */
export interface GrowthRow {
  readonly format: typeof GROWTH_FORMAT;
  readonly model: string;
  readonly draft: string | null;
  readonly device: string;
  readonly webgpu: "builtin" | "dawn";
  /** Of a prefill the context is where it ends. */
  readonly kind: "round" | "prefill";
  /** What its series varies. */
  readonly axis: GrowthAxis;
  readonly context: number;
  readonly batch: number;
  /** Verify rows of a sequence; tokens of a prefill. */
  readonly rows: number;
  readonly runs: number;
  /** By the host's clock, the median: a round that is submitted alone. */
  readonly ms: number;
  /** The device's part; null where it was not measured. Of a prefill all of it. */
  readonly device_ms: number | null;
  readonly draft_ms: number | null;
  readonly verify_ms: number | null;
  readonly extend_ms: number | null;
  /** What is not the device's. */
  readonly host_ms: number | null;
  /** At least read and written, everything once. */
  readonly bytes: number;
  readonly flops: number;
  /** The time of these bytes at full bandwidth; null where that is not known. */
  readonly floor_ms: number | null;
  /** The device's time over the floor. */
  readonly over_floor: number | null;
  /** 10^12 floating-point operations a second. */
  readonly tflops: number;
  /** Verify rows of all sequences, or tokens of a prompt. */
  readonly rows_per_second: number;
  readonly memory: PredictedMemory;
}

interface Place {
  readonly subject: Subject;
  readonly axis: GrowthAxis;
  readonly point: GrowthPoint;
  readonly memory: PredictedMemory;
  /** 10^9 bytes a second. */
  readonly bandwidth: number | undefined;
}

/** @param place.point of the rounds. */
export function roundRow({ rounds, work }: PointSamples, place: Place): GrowthRow {
  const of = (part: "ms" | "draftMs" | "verifyMs" | "extendMs") =>
    median(rounds.map((round) => round[part]));
  const timed = rounds.some(({ verifyMs }) => verifyMs > 0);
  const device = rounds.map(({ draftMs, verifyMs, extendMs }) => draftMs + verifyMs + extendMs);
  const ms = of("ms");
  const deviceMs = timed ? median(device) : null;
  const hostMs = median(rounds.map((round, i) => round.ms - (device[i] ?? 0)));
  const { batch, rows } = place.point;
  return {
    ...identity(place, "round"),
    rows,
    runs: rounds.length,
    ms,
    device_ms: deviceMs,
    draft_ms: timed ? of("draftMs") : null,
    verify_ms: timed ? of("verifyMs") : null,
    extend_ms: timed ? of("extendMs") : null,
    host_ms: timed ? hostMs : null,
    ...rates(work, {
      ms: deviceMs ?? ms,
      bandwidth: place.bandwidth,
      units: batch * rows,
      all: ms,
    }),
    memory: place.memory,
  };
}

export function prefillRow({ count, ms, work }: PrefillSamples, place: Place): GrowthRow {
  const time = median(ms);
  return {
    ...identity(place, "prefill"),
    batch: 1,
    rows: count,
    runs: ms.length,
    ms: time,
    device_ms: null,
    draft_ms: null,
    verify_ms: null,
    extend_ms: null,
    host_ms: null,
    ...rates(work, { ms: time, bandwidth: place.bandwidth, units: count, all: time }),
    memory: place.memory,
  };
}

function identity({ subject, axis, point }: Place, kind: GrowthRow["kind"]) {
  const { model, draft = null, device, webgpu = "builtin" } = subject;
  const { context, batch } = point;
  const measured = { format: GROWTH_FORMAT, model, draft, device, webgpu } as const;
  return { ...measured, kind, axis, context, batch };
}

function rates(
  { bytes, flops }: LeastWork,
  { ms, bandwidth, units, all }: {
    readonly ms: number;
    readonly bandwidth: number | undefined;
    readonly units: number;
    /** What `units` take, the host's part too. */
    readonly all: number;
  },
) {
  const floor = bandwidth === undefined ? null : bytes / 1e6 / bandwidth;
  return {
    bytes,
    flops,
    floor_ms: floor,
    over_floor: floor === null ? null : ms / floor,
    tflops: flops / 1e9 / ms,
    rows_per_second: units / all * 1000,
  };
}

/** What a line of a chart is called: the model, and the WebGPU where there are two. */
export function seriesNames(
  rows: readonly Pick<GrowthRow, "model" | "webgpu">[],
): (row: Pick<GrowthRow, "model" | "webgpu">) => string {
  const several = new Set(rows.map(({ webgpu }) => webgpu)).size > 1;
  return ({ model, webgpu }) => several ? `${model}, ${webgpu}` : model;
}

/** What the row's series varies. */
export function valueOf({ axis, ...row }: GrowthRow): number {
  return row[axis];
}
