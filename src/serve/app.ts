import { Hono } from "hono";
import { anthropicError } from "./anthropic/errors.ts";
import { ApiError, errorBody } from "./http/errors.ts";
import type { Handler } from "./http/listener.ts";
import { checkKey, checkSource, originHeaders } from "./http/guard.ts";
import { get, type Route, templateOf } from "./service/route.ts";
import { openApi } from "./openapi.ts";
import { ollamaError } from "./ollama/errors.ts";
import { ROUTES } from "./routes.ts";
import { type Log, reported } from "./service/log.ts";
import type { Service } from "./service/service.ts";
import { idHeaders, openTrace, type Trace } from "./service/trace.ts";

/** Answers what the routes answer, and writes each request to the service's log. */
export function openApp(service: Service): Handler {
  const { options, log } = service;
  // Built at the first request for it, because that takes a tenth of a second.
  let described: unknown;
  const document = get(
    { path: "/openapi.json", summary: "This document", tag: "Status" },
    () => {
      const of = { version: options.version, keyed: options.apiKey !== undefined };
      return Response.json(described ??= openApi(routes, of));
    },
  );
  const routes: readonly Route[] = [...ROUTES, document];
  const app = new Hono<{ Bindings: { readonly trace: Trace } }>();
  for (const route of routes) {
    app.all(route.path, async (context) => {
      const request = context.req.raw;
      const { trace } = context.env;
      trace.route = templateOf(route);
      try {
        // Without the key nobody learns which routes there are.
        if (!route.open) checkKey(request, options);
        checkMethod(request, route);
        const call = { service, request, signal: request.signal, trace };
        return await route.handle({ ...call, params: context.req.param() });
      } catch (error) {
        return refused(error, { log, trace, shape: route.errors ?? shapeOf(request) });
      }
    });
  }
  app.notFound(({ req, env: { trace } }) => {
    try {
      checkKey(req.raw, options);
      throw new ApiError(404, `there is no ${req.method} ${req.path.slice(0, 200)} here`);
    } catch (error) {
      return refused(error, { log, trace, shape: shapeOf(req.raw) });
    }
  });
  app.onError((error, { env: { trace } }) => refused(error, { log, trace }));

  async function answered(request: Request, trace: Trace): Promise<Response> {
    try {
      checkSource(request, options);
    } catch (error) {
      return refused(error, { log, trace, shape: shapeOf(request) });
    }
    const headers = originHeaders(request, options);
    const asked = request.method === "OPTIONS" && headers["access-control-allow-origin"];
    const response = asked
      ? new Response(null, { status: 204 })
      : await app.fetch(request, { trace });
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    return response;
  }

  return async (request, exchange) => {
    const { address } = exchange;
    const trace = openTrace(request, { address, keepsTexts: options.logPrompts });
    exchange.onEnd((ended) => {
      log.access(trace, ended);
      const { method, route } = trace;
      service.metrics.http({ method, route, status: ended.status });
    });
    const response = await answered(request, trace);
    const added = { ...idHeaders(trace.id), ...NOSNIFF };
    for (const [name, value] of Object.entries(added)) response.headers.set(name, value);
    return response;
  };
}

/**
 * The shape of an error where no route defines one: that of the API whose path prefix or header the request
 * has.
 */
function shapeOf({ url, headers }: Request): NonNullable<Route["errors"]> {
  const { pathname } = new URL(url);
  if (pathname.startsWith("/api/")) return ollamaError;
  const anthropic = pathname.startsWith("/v1/messages") || headers.has("anthropic-version");
  return anthropic ? anthropicError : errorBody;
}

/** Browsers take no answer for what its type does not say. */
const NOSNIFF = { "x-content-type-options": "nosniff" } as const;

/** @throws ApiError (405) for another method than the route's; a GET is also answered as HEAD, without its body. */
function checkMethod({ method }: Request, route: Route): void {
  const allowed = route.method.toUpperCase();
  if (method === allowed || method === "HEAD" && allowed === "GET") return;
  throw new ApiError(405, `${templateOf(route)} takes ${allowed}, not ${method.slice(0, 20)}`, {
    headers: { allow: allowed },
  });
}

/** Turns what was thrown into an answer, see `reported`. @param shape the error's JSON; default OpenAI's. */
export function refused(
  error: unknown,
  { log, trace, shape = errorBody }: {
    readonly log: Log;
    readonly trace?: Trace;
    readonly shape?: Route["errors"];
  },
): Response {
  const answer = reported(error, { log, trace });
  return Response.json(shape(answer), {
    status: answer.status,
    headers: { ...answer.headers, ...NOSNIFF },
  });
}
