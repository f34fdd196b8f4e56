import type { z } from "zod";
import type { Service } from "./service.ts";
import { checked, readJson } from "../http/body.ts";
import type { ApiError } from "../http/errors.ts";
import type { Trace } from "./trace.ts";

/** A request on its way to a route. */
export interface Call {
  readonly service: Service;
  readonly request: Request;
  /** Aborts when the client goes. */
  readonly signal: AbortSignal;
  /** Parameters of the path, by name. */
  readonly params: Readonly<Record<string, string>>;
  /** The fields that the log writes for this call. */
  readonly trace: Trace;
}

/** One route: what GET /openapi.json says of it, and what it does. */
export interface Route {
  readonly method: "get" | "post";
  /** The path in hono's form: `/v1/models/:id`. */
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  /** What its body has to be; absent: it has none. */
  readonly body?: z.ZodType;
  /** Answers without the key. */
  readonly open?: true;
  /** It has no other answer than 501. */
  readonly refuses?: true;
  /** Its API's shape of an error; default OpenAI's. */
  readonly errors?: (error: ApiError) => unknown;
  readonly handle: (call: Call) => Promise<Response> | Response;
}

/** The route's path with its parameters' names: `/v1/models/:id`. */
export function templateOf({ path }: Pick<Route, "path">): string {
  return path.replaceAll(/\{[^}]*\}/g, "");
}

type About = Pick<Route, "path" | "summary" | "tag" | "open" | "errors">;

export function get(about: About, handle: Route["handle"]): Route {
  return { method: "get", ...about, handle };
}

/** A route whose body is checked before `handle` is called. */
export function post<T>(
  about: About,
  body: z.ZodType<T>,
  handle: (body: T, call: Call) => Promise<Response> | Response,
): Route {
  return {
    method: "post",
    ...about,
    body,
    handle: async (call) => await handle(checked(body, await readJson(call.request)), call),
  };
}
