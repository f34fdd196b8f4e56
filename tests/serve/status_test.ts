import assert from "node:assert/strict";
import parsePrometheus from "npm:parse-prometheus-text-format@1.1.1";
import { fakeEngine } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { rawHttp } from "./raw.ts";
import { type Json, serve, user } from "./server.ts";

const CHAT = "/v1/chat/completions";
const COUNT = { ...user("Count from 3 to 20."), temperature: 0, max_tokens: 20 };

/** The numbers of a text that Prometheus reads, by name and labels other than the model's. */
function samples(text: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const { name, metrics } of parsePrometheus(text)) {
    for (const { value, labels: { model_name, ...labels } = {}, buckets } of metrics) {
      // A histogram's count is its last bucket.
      const number = Number(value ?? buckets?.["+Inf"]);
      const others = Object.entries(labels).map(([label, of]) => `${label}="${of}"`).join(",");
      found.set(`${name}${others && `{${others}}`}`, number);
      assert.ok(Number.isFinite(number), name);
      if (buckets === undefined) assert.equal(model_name, "fledgling", name);
    }
  }
  return found;
}

Deno.test("what a server tells of itself", async (t) => {
  await using server = await serve({ maxBatch: 2 });
  const usage: Json[] = [];
  const { engine } = (server.server.service.phase as Json).ready;

  await t.step("models", async () => {
    const { data: [model, ...more] } = await server.json("/v1/models");
    assert.deepEqual([model.id, model.object, more], ["fledgling", "model", []]);
    assert.deepEqual(await server.json("/v1/models/fledgling"), model);
    const missing = await server.ask("/v1/models/org/other");
    assert.equal(missing.status, 404);
    assert.equal((await missing.json()).error.code, "model_not_found");
  });

  await t.step("tokens and back", async () => {
    const text = "<|im_start|>amber é";
    const { tokens, count } = await server.json("/tokenize", { content: text });
    assert.equal(tokens.length, count);
    assert.equal(tokens[0], 0);
    assert.deepEqual(await server.json("/detokenize", { tokens }), { content: text, prompt: text });
    const { tokens: pieces } = await server.json("/tokenize", { prompt: text, with_pieces: true });
    assert.deepEqual(pieces.map(({ id }: Json) => id), tokens);
    assert.equal(pieces[0].piece, "<|im_start|>");
    const joined = pieces.flatMap(({ piece }: Json) =>
      typeof piece === "string" ? [...new TextEncoder().encode(piece)] : piece
    );
    assert.equal(new TextDecoder().decode(Uint8Array.from(joined)), text);
    const { tokens: parts } = await server.json("/tokenize", { content: "𝄞", with_pieces: true });
    assert.deepEqual(parts.flatMap(({ piece }: Json) => piece), [0xf0, 0x9d, 0x84, 0x9e]);
    for (const body of [{}, { content: "a", prompt: "b" }]) {
      assert.equal((await server.ask("/tokenize", body)).status, 400);
    }
    const { error } = await server.json("/detokenize", { tokens: [99_999] });
    assert.match(error.message, /Cannot decode token id 99999/);
  });

  await t.step("metrics add up to what the answers say", async () => {
    for (const fields of [{}, {}, { num_steps: 0 }]) {
      usage.push((await server.json(CHAT, { ...COUNT, ...fields })).usage);
    }
    const response = await server.ask("/metrics");
    assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
    const text = await response.text();
    const told = samples(text);
    // The parser leaves out what it cannot read.
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    for (const line of lines) assert.match(line, /^eyrie:[a-z0-9_]+\{[^}]+\} [\d.e+-]+$/);
    const families = text.match(/^# TYPE /gm)?.length;
    assert.equal(parsePrometheus(text).length, families);
    const sum = (of: (each: Json) => number) => usage.reduce((all, each) => all + of(each), 0);
    const accepted = sum((each) => each.completion_tokens_details.accepted_prediction_tokens);
    const rejected = sum((each) => each.completion_tokens_details.rejected_prediction_tokens);
    const cached = sum((each) => each.prompt_tokens_details.cached_tokens);
    const expected: Record<string, number> = {
      prompt_tokens_total: sum((each) => each.prompt_tokens),
      generation_tokens_total: 60,
      prefix_cache_queries_total: sum((each) => each.prompt_tokens),
      prefix_cache_hits_total: cached,
      spec_decode_num_draft_tokens_total: accepted + rejected,
      spec_decode_num_accepted_tokens_total: accepted,
      num_requests_running: 0,
      num_requests_waiting: 0,
      'request_success_total{finished_reason="length"}': 3,
      time_to_first_token_seconds: 3,
      time_per_output_token_seconds: 3,
      e2e_request_latency_seconds: 3,
    };
    for (const [name, value] of Object.entries(expected)) {
      assert.equal(told.get(`eyrie:${name}`), value, name);
    }
    assert.ok(cached > 0 && accepted > 0);
    const at = (position: number) =>
      told.get(`eyrie:spec_decode_num_accepted_tokens_per_pos_total{position="${position}"}`) ?? 0;
    assert.equal(at(0) + at(1) + at(2) + at(3), accepted);
    assert.ok(at(0) >= at(1) && at(1) >= at(2));
    assert.ok((told.get("eyrie:max_total_num_tokens") ?? 0) >= 2 * 1024);
    assert.equal(told.get("eyrie:kv_cache_usage_perc"), 0, "what only the cache holds is free");
  });

  await t.step("props and server_info", async () => {
    const props = await server.json("/props");
    assert.equal(props.total_slots, 2);
    assert.equal(props.default_generation_settings.n_ctx, 1024);
    assert.match(props.chat_template, /im_start/);
    const info = await server.json("/server_info");
    assert.equal(info.speculative_algorithm, "EAGLE3");
    assert.deepEqual(
      [info.speculative_num_steps, info.speculative_eagle_topk, info.speculative_num_draft_tokens],
      [3, 1, 4],
    );
    assert.equal(info.lossless, true);
    const [state] = info.internal_states;
    assert.equal(state.kv_pages.free, state.kv_pages.total);
    assert.equal(info.max_total_num_tokens, 16 * state.kv_pages.total);
    assert.ok(state.adaptive.rounds > 0);
  });

  await t.step("slots, while they work", async () => {
    const long = { ...COUNT, max_tokens: 300, ignore_eos: true, stream: true };
    const leaving = new AbortController();
    const init = { method: "POST", body: JSON.stringify(long), signal: leaving.signal };
    const responses = await Promise.all([1, 2].map(() => server.ask(CHAT, undefined, init)));
    await Promise.all(responses.map((response) => response.body?.getReader().read()));
    const slots = await server.json("/slots");
    assert.deepEqual(slots.map(({ id, is_processing }: Json) => [id, is_processing]), [
      [0, true],
      [1, true],
    ]);
    assert.ok(
      slots.every(({ n_prompt_tokens }: Json) => n_prompt_tokens === usage[0].prompt_tokens),
    );
    const told = samples(await (await server.ask("/metrics")).text());
    assert.equal(told.get("eyrie:num_requests_running"), 2);
    leaving.abort();
    await gone();
    assert.ok((await server.json("/slots")).every((slot: Json) => !slot.is_processing));
  });

  await t.step("who leaves gives slot and pages back, and who comes next has them", async () => {
    for (const stream of [true, false]) {
      const leaving = new AbortController();
      const body = JSON.stringify({ ...COUNT, max_tokens: 900, ignore_eos: true, n: 2, stream });
      const asked = server.ask(CHAT, undefined, { method: "POST", body, signal: leaving.signal });
      await started(2);
      leaving.abort();
      await asked.then((response) => response.body?.cancel()).catch(() => {});
      await gone();
      const { choices } = await server.json(CHAT, COUNT);
      assert.equal(choices[0].finish_reason, "length");
      const { pages } = await engine.readStatus();
      assert.equal(pages.free, pages.total);
    }
  });

  await t.step("who never reads holds up nobody", async () => {
    const { hostname, port } = new URL(server.url);
    using connection = await Deno.connect({ hostname, port: Number(port) });
    const body = JSON.stringify({
      ...COUNT,
      max_tokens: 60,
      ignore_eos: true,
      stream: true,
      logprobs: true,
      top_logprobs: 20,
    });
    const head =
      `POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`;
    await connection.write(new TextEncoder().encode(head + body));
    await started(1);
    const answers = await Promise.all([1, 2, 3].map(() => server.json(CHAT, COUNT)));
    assert.equal(new Set(answers.map(({ choices }) => choices[0].message.content)).size, 1);
    await gone();
    assert.equal((await server.json("/health")).status, "ok");
  });

  await t.step("nothing of one request is seen by another", async () => {
    const [one, two] = ["The secret is 1234.", "The secret is 9876."];
    const alone = await Promise.all([one, two].map(text));
    const together = await Promise.all([one, two, one, two].map(text));
    assert.deepEqual(together, [...alone, ...alone]);
  });

  await t.step("openapi.json has every route and what they check", async () => {
    const { openapi, paths } = await server.json("/openapi.json");
    assert.equal(openapi, "3.1.0");
    const routes = [
      "/v1/chat/completions",
      "/v1/models/{id}",
      "/health",
      "/openapi.json",
      "/slots",
    ];
    for (const path of routes) assert.ok(paths[path], path);
    const { schema } = paths["/v1/chat/completions"].post.requestBody.content["application/json"];
    assert.deepEqual(schema.required, ["messages"]);
    assert.ok(schema.properties.response_format && schema.additionalProperties !== false);
  });

  await t.step("one connection, several requests, and HEAD", async () => {
    const one = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n";
    const text = await rawHttp(server.url, `${one}\r\n${one}Connection: close\r\n\r\n`);
    assert.equal(text.split("HTTP/1.1 200").length - 1, 2);
    const head = await server.ask("/health", undefined, { method: "HEAD" });
    assert.equal(head.status, 200);
  });

  async function text(secret: string): Promise<string> {
    const body = { ...user(secret), temperature: 0, max_tokens: 8 };
    return (await server.json(CHAT, body)).choices[0].message.content;
  }

  async function gone(): Promise<void> {
    while (server.server.service.table.live.size > 0) await pause();
  }

  /** This many requests have their first token. */
  async function started(count: number): Promise<void> {
    const { live } = server.server.service.table;
    while ([...live].filter(({ state }) => state === "decoding").length < count) await pause();
  }
});

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2));
}

Deno.test("the mean accept length leaves out requests that have no token yet", async () => {
  const third = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const beforeWord = (word: string) => {
    if (word !== "four") return Promise.resolve();
    third.resolve();
    return end.promise;
  };
  const engine = fakeEngine({ answer: () => "one two three four", beforeWord });
  await using server = await fakeServer({}, engine);
  const { table } = server.server.service;
  const answer = server.json(CHAT, user("hi"));
  await third.promise;
  const waiting = table.enter(1, "waits");
  const { internal_states: [state] } = await server.json("/server_info");
  table.leave(waiting);
  end.resolve();
  await answer;
  // Three rounds, and the first token is the prefill's.
  assert.equal(state.avg_spec_accept_length, 0.667);
});
