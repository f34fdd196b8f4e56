import { z } from "zod";
import type { Route } from "./service/route.ts";

/** The OpenAPI document of the routes: of what they check bodies with. */
export function openApi(
  routes: readonly Route[],
  { version, keyed }: { readonly version: string; readonly keyed: boolean },
): unknown {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)(\{[^}]*\})?/g, "{$1}");
    paths[path] = { ...paths[path], [route.method]: operation(route, path) };
  }
  const security = keyed ? { security: [{ key: [] }] } : {};
  return {
    openapi: "3.1.0",
    info: { title: "Eyrie", version },
    ...security,
    components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
    paths,
  };
}

function operation({ summary, tag, body, streams, open, method }: Route, path: string): unknown {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => (
    { name, in: "path", required: true, schema: { type: "string" } }
  ));
  const answer = { "application/json": {}, ...streams ? { "text/event-stream": {} } : {} };
  return {
    summary,
    tags: [tag],
    operationId: `${method}${path.replaceAll(/\W+/g, "_")}`,
    ...open ? { security: [] } : {},
    ...parameters.length > 0 ? { parameters } : {},
    ...body === undefined ? {} : {
      requestBody: {
        required: true,
        content: { "application/json": { schema: schemaOf(body) } },
      },
    },
    responses: { 200: { description: "The answer", content: answer } },
  };
}

function schemaOf(body: z.ZodType): unknown {
  const { $schema: _, ...schema } = z.toJSONSchema(body, { io: "input", unrepresentable: "any" });
  return schema;
}
