import { errorBody, unavailable } from "../http/errors.ts";
import { get, type Route } from "../service/route.ts";
import type { Service } from "../service/service.ts";

export const HEALTH_ROUTE: Route = get(
  {
    path: "/health",
    summary: "200 when requests are answered, else 503",
    tag: "Status",
    open: true,
  },
  async ({ service }) => {
    const { phase, options: { roundMs } } = service;
    if (phase.kind === "ready") await phase.ready.heartbeat.check(Math.min(PING_MS, roundMs + 1));
    const { status, body } = health(service);
    return Response.json(body, { status });
  },
);

/** How long GET /health waits for an answer of the engine's thread, ms. */
const PING_MS = 1000;

/** What GET /health answers: llama-server's bodies, while loading with the progress. */
function health(service: Service): { readonly status: number; readonly body: unknown } {
  const fault = faultOf(service);
  if (fault !== undefined) return { status: 503, body: { status: "error", ...fault } };
  const { phase, draining } = service;
  if (phase.kind === "loading") {
    const { progress: loaded } = phase;
    const progress = loaded
      ? { unit: "bytes", ...loaded, share: loaded.total > 0 ? loaded.done / loaded.total : 0 }
      : null;
    const loading = errorBody(unavailable("Loading model"));
    return { status: 503, body: { status: "loading", progress, ...loading } };
  }
  const silentMs = Math.round(phase.kind === "ready" ? phase.ready.heartbeat.silentMs : 0);
  if (!draining) {
    return { status: 200, body: { status: "ok", ...silentMs > 0 ? { silent_ms: silentMs } : {} } };
  }
  const left = service.table.live.size;
  return {
    status: 503,
    body: {
      status: "draining",
      requests: left,
      ...errorBody(unavailable("the server is stopping")),
    },
  };
}

/** Why no answer can be expected, though a model is loaded. */
function faultOf({ phase, table, options: { roundMs } }: Service): unknown {
  const heartbeat = phase.kind === "ready" ? phase.ready.heartbeat : undefined;
  const failure = phase.kind === "failed" ? phase.error : table.failure ?? heartbeat?.failure;
  if (failure !== undefined) return errorBody(unavailable(failure.message));
  const silentMs = Math.max(table.silentMs, heartbeat?.silentMs ?? 0);
  if (silentMs <= roundMs) return undefined;
  const seconds = Math.round(silentMs / 1000);
  const message = `the engine has given no sign of life for ${seconds} s (--round-timeout)`;
  return errorBody(unavailable(message));
}
