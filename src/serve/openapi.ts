import { z } from "zod";
import { anthropicError } from "./anthropic/errors.ts";
import { ollamaError } from "./ollama/errors.ts";
import { ANSWERS, type Described, ERRORS, UNHEALTHY } from "./openapi_answers.ts";
import { type Route, templateOf } from "./service/route.ts";

/** The OpenAPI document of the routes: what they check bodies with, and what they answer. */
export function openApi(
  routes: readonly Route[],
  { version, keyed }: { readonly version: string; readonly keyed: boolean },
): unknown {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)(\{[^}]*\})?/g, "{$1}");
    paths[path] = { ...paths[path], [route.method]: operation(route, { path, keyed }) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Eyrie", version, license: LICENSE },
    servers: [{ url: "/" }],
    security: keyed ? [{ key: [] }] : [],
    paths,
    components: {
      schemas: Object.fromEntries(
        Object.entries(ERRORS).map(([name, schema]) => [name, schemaOf(schema, "output")]),
      ),
      ...keyed ? { securitySchemes: { key: { type: "http", scheme: "bearer" } } } : {},
    },
  };
}

const LICENSE = { name: "Apache 2.0", identifier: "Apache-2.0" } as const;

interface Context {
  readonly path: string;
  /** Is there a key? */
  readonly keyed: boolean;
}

function operation(route: Route, { path, keyed }: Context): unknown {
  const { summary, tag, body, open, method } = route;
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => (
    { name, in: "path", required: true, schema: { type: "string" } }
  ));
  return {
    summary,
    tags: [tag],
    operationId: `${method}${path.replaceAll(/\W+/g, "_")}`,
    ...open ? { security: [] } : {},
    ...parameters.length > 0 ? { parameters } : {},
    ...body === undefined ? {} : {
      requestBody: {
        required: true,
        content: { "application/json": { schema: schemaOf(body, "input") } },
      },
    },
    responses: {
      ...route.refuses ? {} : {
        200: {
          description: "The answer",
          content: contentOf(answerOf(route)),
        },
      },
      ...errorsOf(route, { path, keyed }),
    },
  };
}

function answerOf(route: Route): Described {
  const name = `${route.method} ${templateOf(route)}`;
  const answer = ANSWERS[name];
  if (answer === undefined) throw new Error(`src/serve/openapi_answers.ts has no "${name}"`);
  return answer;
}

function contentOf({ type, schema, stream }: Described): Record<string, unknown> {
  const whole = { schema: schema ? schemaOf(schema, "output") : { type: "string" } };
  if (stream === undefined) return { [type]: whole };
  const one = stream.type === "text/event-stream" ? "The data of each event" : "Each line";
  const after = stream.end === undefined ? "" : `; the last is the text ${stream.end}`;
  return {
    [type]: whole,
    [stream.type]: {
      schema: {
        type: "string",
        description: `${one} is JSON as contentSchema has it${after}. An error is the last one.`,
        contentMediaType: "application/json",
        contentSchema: schemaOf(stream.schema, "output"),
      },
    },
  };
}

/** Errors by their status. A name of a model is looked up by routes with one in body or path. */
function errorsOf(route: Route, { path, keyed }: Context): Record<string, unknown> {
  const named = path.includes("{") || route.body !== undefined;
  const errors: Record<number, string> = {
    ...route.body === undefined ? {} : { 400: "The body cannot be used" },
    ...keyed && !route.open ? { 401: "The key is missing or wrong" } : {},
    403: "The request comes from a page of another origin, or names another host",
    ...named ? { 404: "The model is not served here" } : {},
    ...route.body === undefined ? {} : {
      413: "The body, or what it holds, is too large",
      415: "The body is encoded",
      429: "Too many requests wait",
    },
    500: "The server has made a mistake",
    ...route.refuses ? { 501: "This server does not do that" } : {},
    503: "The model is being loaded, the server is stopping, or the engine does not answer",
  };
  return Object.fromEntries(
    Object.entries(errors).map(([status, description]) => [status, {
      description,
      ...status === "429" || status === "503" ? { headers: RETRY_AFTER } : {},
      content: {
        "application/json": {
          schema: status === "503" && path === "/health"
            ? schemaOf(UNHEALTHY, "output")
            : { $ref: `#/components/schemas/${errorName(route)}` },
        },
      },
    }]),
  );
}

const RETRY_AFTER = {
  "Retry-After": {
    description: "Seconds after which a client may try again",
    schema: { type: "integer" },
  },
} as const;

function errorName({ errors }: Route): keyof typeof ERRORS {
  if (errors === anthropicError) return "AnthropicError";
  return errors === ollamaError ? "OllamaError" : "Error";
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): unknown {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return json;
}
