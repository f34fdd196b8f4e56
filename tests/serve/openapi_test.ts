import assert from "node:assert/strict";
import { Ajv } from "npm:ajv@8.20.0";
import { ANSWERS } from "../../src/serve/openapi_answers.ts";
import { fakeEngine } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { type Json, user } from "./server.ts";

const MESSAGES = user("hi");
const NAMED = { model: "fledgling", ...MESSAGES };

/** Requests, each with the document's path for it if that differs from the request's. */
const REQUESTS: readonly (readonly [path: string, body?: Json, template?: string])[] = [
  ["/v1/chat/completions", { ...MESSAGES, return_rounds: true, logprobs: true }],
  ["/v1/chat/completions", { ...MESSAGES, stream: true, stream_options: { include_usage: true } }],
  ["/v1/chat/completions", { ...MESSAGES, temperature: -1 }],
  ["/v1/chat/completions", { ...MESSAGES, model: "other" }],
  ["/v1/completions", { prompt: "hi" }],
  ["/v1/completions", { prompt: "hi", stream: true }],
  ["/v1/responses", { input: "hi" }],
  ["/v1/responses", { input: "hi", stream: true }],
  ["/v1/models"],
  ["/v1/models/fledgling", undefined, "/v1/models/{id}"],
  ["/v1/models/other", undefined, "/v1/models/{id}"],
  ["/v1/messages", { ...NAMED, max_tokens: 9 }],
  ["/v1/messages", { ...NAMED, max_tokens: 9, stream: true }],
  ["/v1/messages", { ...NAMED, max_tokens: -1 }],
  ["/v1/messages/count_tokens", NAMED],
  ["/api/chat", { ...NAMED, stream: false }],
  ["/api/chat", NAMED],
  ["/api/chat", { ...NAMED, options: { temperature: -1 } }],
  ["/api/generate", { model: "fledgling", prompt: "hi", stream: false }],
  ["/api/generate", { model: "fledgling", prompt: "hi" }],
  ["/api/chat", { model: "fledgling", messages: [] }],
  ["/api/generate", { model: "fledgling", keep_alive: 0 }],
  ["/api/tags"],
  ["/api/ps"],
  ["/api/show", { model: "fledgling" }],
  ["/api/embed", { model: "fledgling", input: "hi" }],
  ["/api/version"],
  ["/"],
  ["/marked.js"],
  ["/health"],
  ["/metrics"],
  ["/server_info"],
  ["/props"],
  ["/slots"],
  ["/tokenize", { content: "hi" }],
  ["/tokenize", { content: "hi", with_pieces: true }],
  ["/detokenize", { tokens: [1] }],
  ["/openapi.json"],
];

Deno.test("openapi.json: each answer has the status, the content type and the JSON that it describes", async () => {
  await using server = await fakeServer(
    {},
    fakeEngine({ answer: () => "<think>a</think>b c", accepted: 0 }),
  );
  const document = await server.json("/openapi.json");
  const ajv = new Ajv({ strict: false });
  const check = (schema: Json, value: unknown, name: string) => {
    const valid = ajv.validate({ components: document.components, ...schema }, value);
    assert.ok(valid, `${name}: ${ajv.errorsText()} in ${JSON.stringify(value)}`);
  };
  for (const [path, body, template = path] of REQUESTS) {
    const response = await server.ask(path, body);
    const operation = document.paths[template][body === undefined ? "get" : "post"];
    const described = operation.responses[response.status];
    const name = `${path} ${JSON.stringify(body)} ${response.status}`;
    assert.ok(described, name);
    const type = (response.headers.get("content-type") ?? "").split(";")[0] ?? "";
    const { schema } = described.content[type] ?? assert.fail(`${name}: ${type}`);
    const text = await response.text();
    if (type === "application/json") check(schema, JSON.parse(text), name);
    const parts = type === "text/event-stream"
      ? [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => data)
      : type === "application/x-ndjson"
      ? text.trim().split("\n")
      : [];
    for (const part of parts) {
      if (part === "[DONE]") assert.match(schema.description, /the last is the text \[DONE\]/);
      else check(schema.contentSchema, JSON.parse(part), name);
    }
    assert.equal(parts.length > 0, schema.contentSchema !== undefined, name);
  }
});

Deno.test("openapi.json: every route is asked by the test above and on the page of the server, and none but routes have answers", async () => {
  await using server = await fakeServer();
  const { paths } = await server.json("/openapi.json");
  const answering = Object.entries<Json>(paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).filter(([, { responses }]) => responses[200] !== undefined)
      .map(([method]) => `${method} ${path}`)
  );
  const asked = REQUESTS.map(([path, body, template = path]) =>
    `${body === undefined ? "get" : "post"} ${template}`
  );
  assert.deepEqual(answering.filter((route) => !asked.includes(route)), []);
  const described = Object.keys(ANSWERS).map((name) => name.replaceAll(/:(\w+)/g, "{$1}"));
  assert.deepEqual(described.filter((name) => !answering.includes(name)), []);
  const page = await Deno.readTextFile(new URL("../../docs/server.md", import.meta.url));
  // The page's own files are not part of the API.
  const named = Object.keys(paths).filter((path) => !path.endsWith(".js"))
    .map((path) => path.replaceAll(/\{(\w+)\}/g, (_, name) => name.toUpperCase()));
  const unlisted = named.filter((path) => !RegExp(`[\` ]${path}[\`?]`).test(page));
  assert.deepEqual(unlisted, []);
});

Deno.test("openapi.json: every operation has its errors, in its API's shape", async () => {
  await using server = await fakeServer({ apiKey: "key" });
  const headers = { authorization: "Bearer key" };
  const { paths, security, components } = await server.json("/openapi.json", undefined, {
    headers,
  });
  assert.deepEqual(security, [{ key: [] }]);
  assert.ok(components.securitySchemes.key);
  for (const [path, methods] of Object.entries<Json>(paths)) {
    const [operation] = Object.values<Json>(methods);
    const { responses } = operation;
    assert.equal(responses[401] === undefined, operation.security !== undefined, path);
    assert.equal(responses[415] === undefined, operation.requestBody === undefined, path);
    const { schema } = responses[500].content["application/json"];
    const shape = path.startsWith("/v1/messages")
      ? "AnthropicError"
      : path.startsWith("/api/")
      ? "OllamaError"
      : "Error";
    assert.equal(schema.$ref, `#/components/schemas/${shape}`, path);
    assert.ok(components.schemas[shape]);
  }
  const own = await fakeServer();
  assert.deepEqual((await own.json("/openapi.json")).security, []);
  await own.server.stop();
});
