import { Hono } from "hono";
import { reason } from "../errors.ts";
import { ApiError, asApiError, errorBody } from "./http/errors.ts";
import type { Handler } from "./http/listener.ts";
import { checkKey, checkSource, originHeaders } from "./http/guard.ts";
import { get, type Route } from "./service/route.ts";
import { openApi } from "./openapi.ts";
import { ROUTES } from "./routes.ts";
import type { Service } from "./service/service.ts";

/** @param log hears of mistakes of the server itself. */
export function openApp(service: Service, log: (line: string) => void): Handler {
  const { options } = service;
  const document = get(
    { path: "/openapi.json", summary: "This document", tag: "Status" },
    () =>
      Response.json(
        openApi(routes, { version: options.version, keyed: options.apiKey !== undefined }),
      ),
  );
  const routes: readonly Route[] = [...ROUTES, document];
  const app = new Hono();
  for (const route of routes) {
    app.on(route.method.toUpperCase(), route.path, async (context) => {
      const request = context.req.raw;
      try {
        if (!route.open) checkKey(request, options);
        const call = { service, request, signal: request.signal, arrived: performance.now() };
        return await route.handle({ ...call, params: context.req.param() });
      } catch (error) {
        return refused(error, log, route.errors);
      }
    });
    app.all(route.path, ({ req }) => refuse(notAllowed(req.method, route)));
  }
  app.notFound(({ req }) => {
    // Without the key nobody learns which routes there are.
    try {
      checkKey(req.raw, options);
    } catch (error) {
      return refuse(asApiError(error));
    }
    return refuse(new ApiError(404, `there is no ${req.method} ${req.path.slice(0, 200)} here`));
  });
  app.onError((error) => refused(error, log));

  return async (request) => {
    try {
      checkSource(request, options);
    } catch (error) {
      return refused(error, log);
    }
    const headers = originHeaders(request, options);
    const asked = request.method === "OPTIONS" && headers["access-control-allow-origin"];
    const response = asked ? new Response(null, { status: 204 }) : await app.fetch(request);
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    return response;
  };
}

function notAllowed(method: string, { method: allowed, path }: Route): ApiError {
  const name = allowed.toUpperCase();
  return new ApiError(405, `${path} takes ${name}, not ${method.slice(0, 20)}`, {
    headers: { allow: name },
  });
}

/** What was thrown as an answer; `log` hears of what is no ApiError. */
export function refused(
  error: unknown,
  log: (line: string) => void,
  shape: Route["errors"] = errorBody,
): Response {
  if (!(error instanceof ApiError)) {
    log(error instanceof Error ? error.stack ?? error.message : reason(error));
  }
  return refuse(asApiError(error), shape);
}

function refuse(error: ApiError, shape: (error: ApiError) => unknown = errorBody): Response {
  return Response.json(shape(error), { status: error.status, headers: error.headers });
}
