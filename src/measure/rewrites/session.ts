import type { GrowthPoint } from "../../engine/check/growth/growth.ts";
import { fillCells } from "../../engine/check/growth/random_cells.ts";
import { enginesSizes, growthPlan, growthRoom } from "../../engine/check/growth/room.ts";
import { MAX_TRIED, measureRewrites, type RewriteShape } from "../../engine/check/rewrites.ts";
import { openEngine } from "../../engine/open.ts";
import type { EngineOptions } from "../../engine/options.ts";
import { combinations } from "../axes.ts";
import { requestedName, subjectOf } from "../bench_engine.ts";
import type { PointEvent } from "../point_event.ts";
import { type RewriteRow, rewriteRow } from "./row.ts";

/** The models and the shapes of a measurement of rewrites. */
export interface RewritesRequest {
  readonly models: readonly EngineOptions[];
  /** Tokens stored, sequences and verify rows of each: rounds of all combinations. */
  readonly context: readonly number[];
  readonly batch: readonly number[];
  readonly rows: readonly number[];
  /** Tokens of the chunk of a prompt. */
  readonly chunk: number;
  /** Pairs measured for each rewrite; four times as many on a hardware adapter. */
  readonly repeat: number;
  readonly signal: AbortSignal;
}

export type RewriteEvent = PointEvent<RewriteRow>;

/** Measures rewrites; yields events until all shapes are measured. */
export type MeasureRewrites = (request: RewritesRequest) => AsyncGenerator<RewriteEvent>;

const HARDWARE_PAIRS = 4;

/**
 * Measures each shape of each model with and without each rewrite, in one engine a model. When the signal aborts, the
 * rewrite in flight is the last one.
 */
export async function* rewrites(request: RewritesRequest): AsyncGenerator<RewriteEvent> {
  for (const model of request.models) {
    if (request.signal.aborted) return;
    const { fit, over } = await fitting(model, shapesOf(request));
    for (const { shape, why } of over) yield skipped(model, [textOf(shape)], why);
    if (fit.length > 0) yield* ofModel(model, fit, request);
  }
}

async function* ofModel(
  model: EngineOptions,
  shapes: readonly RewriteShape[],
  { repeat, signal }: RewritesRequest,
): AsyncGenerator<RewriteEvent> {
  const points = shapes.map(pointOf);
  const { depths: _, ...sizes } = enginesSizes(points);
  using engine = await openEngine({
    ...model,
    device: { ...model.device, profile: true },
    limits: { ...model.limits, ...sizes, prefixCache: false },
    hooks: { ...model.hooks, plan: growthPlan(points) },
  });
  const { runner } = engine;
  await fillCells(runner);
  const subject = subjectOf(engine, model);
  const pairs = runner.gpu.info.software ? repeat : repeat * HARDWARE_PAIRS;
  for (const [at, shape] of shapes.entries()) {
    if (signal.aborted) return;
    const text = `${requestedName(model)}, ${textOf(shape)}`;
    yield { kind: "point", text, done: at * MAX_TRIED, total: shapes.length * MAX_TRIED };
    for await (const found of measureRewrites(runner, shape, { pairs, signal })) {
      if ("total" in found) {
        yield {
          kind: "point",
          text: `${text}, without ${found.rewrite}`,
          done: at * found.total + found.done,
          total: shapes.length * found.total,
        };
      } else if ("why" in found) {
        yield skipped(model, [textOf(shape), `without ${found.rewrite}`], found.why);
      } else if (found.withMs.length > 0) {
        yield { kind: "row", row: rewriteRow(found, { subject, shape }) };
      }
    }
  }
}

/** Rounds of all combinations, each once, and a prompt. */
function shapesOf({ context, batch, rows, chunk }: RewritesRequest): RewriteShape[] {
  const points = combinations<{ [K in keyof GrowthPoint]: number }>({ context, batch, rows });
  return [
    ...points.map((point): RewriteShape => ({ kind: "round", point })),
    { kind: "prompt", rows: chunk },
  ];
}

/** The shapes that the machine has room for, and why the others cannot be measured. */
async function fitting(model: EngineOptions, shapes: readonly RewriteShape[]) {
  using room = await growthRoom(model);
  const fit: RewriteShape[] = [];
  const over: { readonly shape: RewriteShape; readonly why: string }[] = [];
  for (const shape of shapes) {
    const why = room.faultOf(pointOf(shape));
    if (why === undefined) fit.push(shape);
    else over.push({ shape, why });
  }
  return { fit, over };
}

/** The point of growth that takes as many cells. */
function pointOf(shape: RewriteShape): GrowthPoint {
  return shape.kind === "round" ? shape.point : { context: shape.rows, batch: 1, rows: 1 };
}

function textOf(shape: RewriteShape): string {
  if (shape.kind === "prompt") return `prompt of ${shape.rows}`;
  const { context, batch, rows } = shape.point;
  return `context ${context}, batch ${batch}, rows ${rows}`;
}

function skipped(model: EngineOptions, what: readonly string[], why: string): RewriteEvent {
  return { kind: "skipped", what: [requestedName(model), ...what].join(", "), why };
}
