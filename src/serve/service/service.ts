import type { Engine } from "../../engine/engine.ts";
import type { LoadProgress } from "../../engine/load/load.ts";
import type { SamplingChoice } from "../../engine/sampling.ts";
import { type RequestTable, requestTable } from "./table.ts";
import { ApiError, engineFailed, unavailable } from "../http/errors.ts";
import type { Access } from "../http/guard.ts";
import type { Log } from "./log.ts";
import { type Metrics, openMetrics } from "./metrics.ts";
import { type Heartbeat, openHeartbeat } from "./heartbeat.ts";
import { toolFamily } from "../tools/families.ts";
import type { ToolFamily } from "../tools/family.ts";

/** How a server answers. */
export interface ServiceOptions extends Access {
  /** Requests in flight. */
  readonly maxBatch: number;
  /** Requests that may wait for a slot. */
  readonly maxQueue: number;
  /** How long a request may wait for a slot; undefined: as long as its client does. */
  readonly maxQueueMs: number | undefined;
  /** An engine that gives no sign of life for longer is a fault. */
  readonly roundMs: number;
  /** A request with a slot for which the engine does nothing for as long is written to the log. */
  readonly stallMs: number;
  /** The model's name in requests and answers; default the checkpoint's. */
  readonly modelName: string | undefined;
  /** More names by which requests may call the model. */
  readonly otherNames: readonly string[];
  /** Requests may call the model by any name. */
  readonly anyModel: boolean;
  /** Fields and tools that are not known are refused instead of ignored. */
  readonly strict: boolean;
  /** How a request is sampled that does not say. */
  readonly sampling: (engine: Engine) => SamplingChoice;
  /** Most tokens of an answer where a request does not say; default what the context has left. */
  readonly maxTokens: number | undefined;
  /** Template variables of requests that do not give their own. */
  readonly templateArguments: Readonly<Record<string, unknown>>;
  readonly version: string;
  /** Where the server writes about itself. */
  readonly log: Log;
  /** Does the log hold prompts and outputs? */
  readonly logPrompts: boolean;
  /** A name of the model for people. */
  readonly shownName: (name: string) => string;
}

/** An engine that answers, and what is known of its model. */
export interface Ready {
  readonly engine: Engine;
  /** Its name in requests and answers. */
  readonly model: string;
  /** How the model calls tools. */
  readonly tools: ToolFamily;
  readonly heartbeat: Heartbeat;
}

export type Phase =
  | { readonly kind: "loading"; readonly progress?: LoadProgress }
  | { readonly kind: "ready"; readonly ready: Ready }
  | { readonly kind: "failed"; readonly error: Error };

/** What all routes share. */
export interface Service {
  readonly options: ServiceOptions;
  readonly log: Log;
  readonly started: Date;
  readonly metrics: Metrics;
  readonly table: RequestTable;
  phase: Phase;
  /** The server is about to stop, and health says so. */
  draining: boolean;
  /** No request is taken any more. */
  stopping: boolean;
  /** Ends each of the answers that run. */
  readonly ends: Set<() => void>;
}

export function openService(options: ServiceOptions): Service {
  const { maxBatch, maxQueue } = options;
  const metrics = openMetrics(() => nameOf(service) ?? "");
  const service: Service = {
    options,
    log: options.log,
    started: new Date(),
    metrics,
    table: requestTable({ maxBatch, maxQueue, metrics, onFailure: options.log.fault }),
    phase: { kind: "loading" },
    draining: false,
    stopping: false,
    ends: new Set(),
  };
  return service;
}

/** The service has an engine now. */
export function setReady(service: Service, engine: Engine): void {
  const { modelName, shownName } = service.options;
  const model = modelName ?? shownName(engine.info.name);
  const heartbeat = openHeartbeat(() => engine.ping(), (error) => {
    // A request that failed with the engine has reported it.
    if (service.table.failure === undefined) service.log.fault(error);
  });
  service.phase = {
    kind: "ready",
    ready: { engine, model, tools: toolFamily(engine.info), heartbeat },
  };
}

/** @throws ApiError (503) while there is no engine that answers. */
export function readyOf({ phase, stopping, table }: Service): Ready {
  if (stopping) throw unavailable("the server is stopping");
  const failure = phase.kind === "failed"
    ? phase.error
    : table.failure ?? (phase.kind === "ready" ? phase.ready.heartbeat.failure : undefined);
  if (failure !== undefined) throw engineFailed(failure);
  if (phase.kind !== "ready") throw unavailable("Loading model");
  return phase.ready;
}

/** Names of the model in requests; the first is that of answers to requests that name none. */
export function modelNames({ model }: Pick<Ready, "model">, { options }: Service): string[] {
  return [...new Set([model, ...options.otherNames])];
}

/**
 * The model that a request names; the answer has the name that the request has.
 *
 * @throws ApiError (404) for another than the one that is served.
 */
export function modelNamed(service: Service, name: string | null | undefined): Ready {
  const ready = readyOf(service);
  if (name === undefined || name === null || name === ready.model) return ready;
  if (service.options.anyModel || modelNames(ready, service).includes(name)) {
    return { ...ready, model: name };
  }
  const message = `the model "${
    name.slice(0, 200)
  }" does not exist here; served is "${ready.model}"`;
  throw new ApiError(404, message, { param: "model", code: "model_not_found" });
}

function nameOf({ phase }: Service): string | undefined {
  return phase.kind === "ready" ? phase.ready.model : undefined;
}
