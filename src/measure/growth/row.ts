import type {
  GrowthPoint,
  LeastWork,
  PointSamples,
  PrefillSamples,
} from "../../engine/check/growth/growth.ts";
import type { Subject } from "../runner.ts";
import { median } from "../statistics.ts";
import type { GrowthAxis } from "./points.ts";

/** The format of rows in files. Its number changes when a field changes its meaning. */
const GROWTH_FORMAT = "eyrie-growth-1";

/** GPU memory of an engine for one point in bytes, predicted before the engine is loaded. */
export interface PredictedMemory {
  readonly weights: number;
  readonly kv: number;
  readonly scratch: number;
  readonly total: number;
}

/** A round at one point, or a prefill. Field names are those of the files; times are in milliseconds. */
export interface GrowthRow {
  readonly format: typeof GROWTH_FORMAT;
  readonly model: string;
  readonly draft: string | null;
  readonly device: string;
  readonly webgpu: "builtin" | "dawn";
  /** The context of a prefill is the position at which it ends. */
  readonly kind: "round" | "prefill";
  /** The axis along which the row's series varies. */
  readonly axis: GrowthAxis;
  readonly context: number;
  readonly batch: number;
  /** Verify rows of each sequence, or tokens of the prefill. */
  readonly rows: number;
  readonly runs: number;
  /** Median time on the host's clock of a round that is submitted alone. */
  readonly ms: number;
  /** The median device time of a round; null for a prefill, and if the device has no timestamps. */
  readonly device_ms: number | null;
  readonly draft_ms: number | null;
  readonly verify_ms: number | null;
  readonly extend_ms: number | null;
  /** The median of the time that is not device time. */
  readonly host_ms: number | null;
  /** The least bytes that have to be read and written: everything once. */
  readonly bytes: number;
  readonly flops: number;
  /** The time for `bytes` at full bandwidth; null if the bandwidth is not known. */
  readonly floor_ms: number | null;
  /** Device time over `floor_ms`; for a prefill the whole time. */
  readonly over_floor: number | null;
  /** 10^12 floating-point operations per second. */
  readonly tflops: number;
  /** Verify rows of all sequences, or tokens of the prefill, per second. */
  readonly rows_per_second: number;
  readonly memory: PredictedMemory;
}

interface Place {
  readonly subject: Subject;
  readonly axis: GrowthAxis;
  readonly point: GrowthPoint;
  readonly memory: PredictedMemory;
  /** 10^9 bytes per second. */
  readonly bandwidth: number | undefined;
}

/** The row of the rounds measured at `place.point`. */
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

/** The row of the prefills that end at `place.point`. */
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
    /** Milliseconds for all `units`, with the host's work. */
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

/** Names the series of a row: the model, followed by the WebGPU implementation if the rows are from several. */
export function seriesNames(
  rows: readonly Pick<GrowthRow, "model" | "webgpu">[],
): (row: Pick<GrowthRow, "model" | "webgpu">) => string {
  const several = new Set(rows.map(({ webgpu }) => webgpu)).size > 1;
  return ({ model, webgpu }) => several ? `${model}, ${webgpu}` : model;
}

/** The row's value on the axis of its series. */
export function valueOf({ axis, ...row }: GrowthRow): number {
  return row[axis];
}
