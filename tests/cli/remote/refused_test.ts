import assert from "node:assert/strict";
import { playback, stream } from "../../remote/playback.ts";
import { fakeServer } from "../../serve/fake_server.ts";
import { eyrie } from "./run.ts";

const MODELS = JSON.stringify({ data: [{ id: "m", owned_by: "someone" }] });
const PIECE = 'data: {"choices":[{"delta":{"content":"half"}}]}\n\n';

/** A server of model "m" that gives these answers. */
function answering(answer: () => Response) {
  return playback(({ path }) =>
    path === "/v1/models" ? MODELS : path === "/v1/chat/completions" ? answer() : undefined
  );
}

function status(code: number, body: unknown = "", headers: HeadersInit = {}): () => Response {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return () => new Response(text, { status: code, headers });
}

const CASES: readonly [what: string, answer: () => Response, code: number, line: RegExp][] = [
  [
    "busy, with Retry-After",
    status(429, { error: { message: "3 wait already" } }, { "retry-after": "7" }),
    1,
    /^eyrie: Cannot get an answer of "http\S+": it is busy \(429\), try again in 7 s: 3 wait already$/,
  ],
  [
    "busy until a date",
    status(429, "", { "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" }),
    1,
    /429\), try again after Wed, 21 Oct/,
  ],
  [
    "a model that it does not have, as vLLM says it",
    status(404, { object: "error", message: "The model `m` does not exist.", code: 404 }),
    2,
    /: Cannot use model "m" of "http\S+" \(404\): The model `m` does not exist\.$/,
  ],
  [
    "no such route",
    status(404, { detail: "Not Found" }),
    2,
    /it has no \/v1\/chat\/completions \(404\)/,
  ],
  [
    "a field that it refuses",
    status(400, { error: { message: "top_k: no such field\nat all" } }),
    2,
    /it refused the request \(400\): top_k: no such field at all$/,
  ],
  [
    "a wrong key",
    status(401, { error: "nope" }),
    2,
    /it requires a key \(401\): set EYRIE_REMOTE_KEY: nope$/,
  ],
  ["broken", status(502, "<html><h1>Bad gateway</h1></html>"), 1, /it failed \(502\)$/],
  [
    "elsewhere",
    status(308, "", { location: "http://other/v1" }),
    2,
    /it points to http:\/\/other\/v1 \(308\)/,
  ],
  [
    "a page instead of a stream",
    status(200, "<html>", { "content-type": "text/html" }),
    1,
    /it sent text\/html, not a stream of events$/,
  ],
  ["cut off in the middle", () => stream(PIECE), 1, /its stream was cut off in the middle$/],
  [
    "cut off in an event",
    () => stream(PIECE, 'data: {"choices":['),
    1,
    /its stream was cut off in the middle$/,
  ],
  ["no JSON", () => stream(PIECE, "data: oh\n\n"), 1, /an event that is no JSON object: oh$/],
  [
    "an error in the middle",
    () => stream(PIECE, 'data: {"error":{"message":"the engine died"}}\n\n'),
    1,
    /it failed in the middle: the engine died$/,
  ],
  [
    "an error in the middle that has many lines",
    () =>
      stream(PIECE, `data: ${JSON.stringify({ error: { message: "died:\n  at a\n  at b" } })}\n\n`),
    1,
    /it failed in the middle: died: at a at b$/,
  ],
  [
    "an error in the middle that is no text",
    () => stream(PIECE, 'data: {"error":true}\n\n'),
    1,
    /it failed in the middle: true$/,
  ],
  [
    "an error with the status 200",
    status(200, { error: { message: "no such thing" } }, { "content-type": "application/json" }),
    1,
    /it sent application\/json, not a stream of events: no such thing$/,
  ],
  [
    "a field that FastAPI refuses",
    status(422, { detail: [{ loc: ["body", "stop"], msg: "Field required" }] }),
    2,
    /it refused the request \(422\): \[\{"loc":\["body","stop"\],"msg":"Field required"\}\]$/,
  ],
];

for (const [what, answer, code, line] of CASES) {
  Deno.test(`generate --remote: ${what}: one line, exit ${code}`, async () => {
    await using server = answering(answer);
    const found = await eyrie(["generate", "--remote", server.url, "Hi."]);
    assert.equal(found.code, code, found.err);
    const [first = "", ...rest] = found.err.split("\n");
    assert.match(first, line);
    assert.deepEqual(rest, [""]);
    assert.ok(["", "half\n"].includes(found.out), "what came before ends with its line");
  });
}

const HEAD = "HTTP/1.1 200 OK\r\nconnection: close\r\n";

/** A server that sends the raw answer that `answer` gives to the beginning of a request, and closes the connection. */
function raw(answer: (request: string) => string): AsyncDisposable & { readonly url: string } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of listener) {
      const bytes = new Uint8Array(4096);
      const read = await connection.read(bytes) ?? 0;
      const request = new TextDecoder().decode(bytes.subarray(0, read));
      await connection.write(new TextEncoder().encode(answer(request)));
      connection.close();
    }
  })();
  return {
    url: `http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      await serving;
    },
  };
}

Deno.test("generate --remote: a connection that breaks in the middle", async () => {
  await using server = raw((request) => {
    if (request.startsWith("GET /v1/models")) {
      return `${HEAD}content-length: ${MODELS.length}\r\n\r\n${MODELS}`;
    }
    return request.startsWith("POST")
      ? `${HEAD}content-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n${PIECE}`
      : "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
  });
  const found = await eyrie(["generate", "--remote", server.url, "Hi."]);
  assert.equal(found.code, 1, found.err);
  assert.equal(found.out, "half\n");
  assert.match(
    found.err,
    /^eyrie: Cannot get an answer of .*: its stream was cut off in the middle\n$/,
  );
});

Deno.test("generate --remote: nobody there, a wrong key, no model, several models", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  const gone = await eyrie(["generate", "--remote", `http://127.0.0.1:${port}`, "Hi."]);
  assert.equal(gone.code, 2);
  assert.equal(gone.err, `eyrie: Cannot reach "http://127.0.0.1:${port}": nothing listens there\n`);

  await using locked = await fakeServer({ apiKey: "right" });
  const without = await eyrie(["generate", "--remote", locked.url, "Hi."]);
  assert.equal(without.code, 2);
  assert.match(without.err, /it requires a key \(401\): set EYRIE_REMOTE_KEY/);
  const wrong = await eyrie(["generate", "--remote", locked.url, "Hi."], { key: "wrong-key" });
  assert.match(wrong.err, /: it refused the key \(401\): /);
  assert.doesNotMatch(wrong.err, /wrong-key/);
  const right = await eyrie(["generate", "--remote", locked.url, "Hi."], { key: "right" });
  assert.deepEqual([right.code, right.out], [0, "answer 1\n"]);

  const other = await eyrie(["generate", "--remote", locked.url, "-m", "other", "Hi."], {
    key: "right",
  });
  assert.equal(other.code, 2);
  assert.match(
    other.err,
    /Cannot use model "other" of "http\S+" \(404\): the model "other" does not/,
  );

  await using many = playback(() => JSON.stringify({ data: [{ id: "a" }, { id: "b" }] }));
  const several = await eyrie(["generate", "--remote", many.url, "Hi."]);
  assert.equal(several.code, 2);
  assert.match(several.err, /it serves several models; give --model a, b\n$/);
  await using aliased = await fakeServer({ modelName: "a", otherNames: ["b"] });
  const byAlias = await eyrie(["generate", "--remote", aliased.url, "Hi."]);
  assert.deepEqual([byAlias.code, byAlias.out], [0, "answer 1\n"]);
  await using none = playback(() => "it works!");
  const page = await eyrie(["generate", "--remote", none.url, "Hi."]);
  assert.equal(page.code, 1);
  const noJson = /its \/v1\/models is no JSON, or was cut off; is it a server of OpenAI's API\?\n$/;
  assert.match(page.err, noJson);
  await using short = raw(() => `${HEAD}content-length: 99\r\n\r\n{"data":`);
  const cut = await eyrie(["generate", "--remote", short.url, "Hi."]);
  assert.equal(cut.code, 1);
  assert.match(cut.err, noJson);
  await using bare = playback(({ path }) =>
    path === "/v1/chat/completions" ? stream(PIECE, "data: [DONE]\n\n") : undefined
  );
  const named = await eyrie(["generate", "--remote", bare.url, "-m", "x", "Hi."]);
  assert.deepEqual([named.code, named.out], [0, "half\n"], "a server without a list of models");
  const unnamed = await eyrie(["generate", "--remote", bare.url, "Hi."]);
  assert.equal(unnamed.code, 2);
  assert.match(unnamed.err, /it has no \/v1\/models \(404\)/);
});

Deno.test("flags that say nothing to a server are refused in one line", async () => {
  const cases: [line: string, flag: string, why: RegExp][] = [
    ["generate --quantize q8", "--quantize", /the server has its own/],
    ["generate --draft auto", "--draft", /the server has its own/],
    ["generate --num-steps 3", "--num-steps", /the server has its own/],
    ["generate --policy ema", "--policy", /the server has its own/],
    ["generate --batch x.jsonl", "--batch", /answered by an engine in this process/],
    ["generate --regex a+", "--regex", /allowed is --json-schema/],
    ["generate --logprobs 2 --json", "--logprobs", /only an engine in this process reports/],
    ["chat --adapter software", "--adapter", /the server has its own/],
    ["chat --generation-config none", "--generation-config", /its own defaults/],
    ["bench load --policy ema", "--policy", /decided when it is started/],
    ["bench load --max-batch 4", "--max-batch", /the server has its own/],
    ["bench load --recording x", "--recording", /does not report its rounds/],
  ];
  for (const [line, flag, why] of cases) {
    const { code, err } = await eyrie([...line.split(" "), "--remote", "http://127.0.0.1:1"]);
    assert.equal(code, 2, line);
    assert.match(err, why);
    assert.ok(err.startsWith(`eyrie: Cannot use "${flag}" with "--remote": `), err);
    assert.equal(err.trimEnd().includes("\n"), false);
  }
  const serve = await eyrie(["serve", "--remote", "http://127.0.0.1:1"]);
  assert.match(serve.err, /"--remote" with serve: it is allowed with generate, chat, bench load/);
});
