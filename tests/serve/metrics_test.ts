import assert from "node:assert/strict";
import parsePrometheus from "npm:parse-prometheus-text-format@1.1.1";
import { fakeEngine } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { type Json, user } from "./server.ts";

const CHAT = "/v1/chat/completions";

/** The families of GET /metrics by name, without the prefix. */
function families(text: string): Map<string, Json> {
  return new Map(
    parsePrometheus(text).map(({ name, ...rest }: Json) => [name.replace("eyrie:", ""), rest]),
  );
}

Deno.test("metrics: queue time, lengths of prompts and outputs, HTTP requests by route and status", async () => {
  const engine = fakeEngine();
  const counts = { preemptions: 3, waits: 0, catchUps: 0, catchUpMs: 0, wasted: 0 };
  const { status } = engine;
  engine.readStatus = () => Promise.resolve({ ...status, counts });
  await using server = await fakeServer({}, engine);
  await server.json(CHAT, user("one two three"));
  for (const path of ["/v1/models/fledgling", "/v1/models/a", "/secret-1", "/secret-2"]) {
    await (await server.ask(path)).text();
  }
  await (await server.ask("/secret", undefined, { method: "PROPFIND" })).text();
  await (await server.ask(CHAT, { ...user("hi"), user: "somebody", temperature: -1 })).text();
  // A request is counted when its connection is done with it.
  const last = /status="400"[^}]*\} 1\n/;
  let text = "";
  while (!last.test(text)) text = await (await server.ask("/metrics")).text();
  const found = families(text);
  const buckets = (name: string) => found.get(name).metrics[0].buckets;
  assert.equal(found.get("request_queue_time_seconds").type, "HISTOGRAM");
  for (const name of ["request_queue_time_seconds", "time_to_first_token_seconds"]) {
    assert.ok("0.001" in buckets(name), `${name} tells milliseconds apart`);
  }
  assert.deepEqual(
    [buckets("request_prompt_tokens")["2"], buckets("request_prompt_tokens")["5"]],
    ["0", "1"],
  );
  assert.deepEqual(
    [buckets("request_generation_tokens")["1"], buckets("request_generation_tokens")["2"]],
    ["0", "1"],
  );
  const { type, metrics } = found.get("http_requests_total");
  assert.equal(type, "COUNTER");
  const others = metrics.filter(({ labels }: Json) => labels.path !== "/metrics");
  const told = others.map(({ value, labels: { method, path, status } }: Json) =>
    [method, path, status, value].join(" ")
  );
  assert.deepEqual(told.toSorted(), [
    "GET /v1/models/:id 200 1",
    "GET /v1/models/:id 404 1",
    "GET other 404 2",
    "POST /v1/chat/completions 200 1",
    "POST /v1/chat/completions 400 1",
    "other other 404 1",
  ]);
  for (const [name, family] of found) {
    assert.equal(family.type === "COUNTER", name.endsWith("_total"), name);
  }
  assert.equal(found.get("num_preemptions_total").metrics[0].value, "3");
  const again = families(await (await server.ask("/metrics")).text());
  assert.equal(again.get("num_preemptions_total").metrics[0].value, "3");
  assert.ok(!/secret|somebody/.test(text));
});
