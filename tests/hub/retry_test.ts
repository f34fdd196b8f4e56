import assert from "node:assert/strict";
import { asker } from "../../src/hub/http.ts";
import { parseModelName } from "../../src/hub/names.ts";
import { persist, TransientError } from "../../src/hub/retry.ts";

/** A function that fails the given number of times, then succeeds. */
function failing(times: number, waitMs = 0): () => Promise<string> {
  return () => {
    times -= 1;
    return times >= 0 ? Promise.reject(new TransientError("busy", waitMs)) : Promise.resolve("ok");
  };
}

Deno.test("one attempt more than there are waits", async () => {
  assert.equal(await persist("Cannot x", failing(2), { waits: [1, 1] }), "ok");
  await assert.rejects(persist("Cannot x", failing(3), { waits: [1, 1] }), {
    name: "UsageError",
    message: "Cannot x: busy, tried 3 times",
  });
  await assert.rejects(persist("Cannot x", failing(1), { waits: [] }), {
    message: "Cannot x: busy",
  });
});

Deno.test("progress of a megabyte counts the attempts anew", async () => {
  let received = 0;
  const fails = failing(5);
  const attempt = () => {
    received += 1 << 20;
    return fails();
  };
  assert.equal(await persist("x", attempt, { waits: [1], received: () => received }), "ok");
});

Deno.test("a server that wants more patience than anybody has, other errors, an abort", async () => {
  await assert.rejects(persist("x", failing(1, 1e9), { waits: [1] }), { message: "x: busy" });
  const bug = () => Promise.reject(new RangeError("bug"));
  await assert.rejects(persist("x", bug, { waits: [1] }), { name: "RangeError" });
  const stop = new AbortController();
  const waiting = persist("x", failing(9), { waits: [60_000], signal: stop.signal });
  queueMicrotask(() => stop.abort());
  await assert.rejects(waiting, { name: "AbortError" });
});

Deno.test("a server is waited for as long as it says, but not for what is tried only twice", async () => {
  const asked = async (headers: Record<string, string>) => {
    const answer = () => new Response(null, { status: 429, headers });
    const how = { port: 0, hostname: "127.0.0.1", onListen: () => {} };
    await using server = Deno.serve(how, answer);
    const endpoint = `http://127.0.0.1:${server.addr.port}`;
    return await asker(parseModelName("org/toy"), { endpoint, token: undefined })(endpoint, {});
  };
  const cases: readonly (readonly [Record<string, string>, number])[] = [
    [{}, 0],
    [{ "Retry-After": "7" }, 7000],
    // As the hub says it.
    [
      { RateLimit: '"api";r=0;t=55', "RateLimit-Policy": '"fixed window";"api";q=500;w=300' },
      56_000,
    ],
    [{ RateLimit: "soon" }, 0],
  ];
  for (const [headers, waitMs] of cases) {
    await assert.rejects(asked(headers), { name: "TransientError", waitMs });
  }
  await assert.rejects(persist("x", failing(1, 56_000), { waits: [1] }), { message: "x: busy" });
  const told: string[] = [];
  const stop = new AbortController();
  const onWait = (line: string) => {
    told.push(line);
    stop.abort();
  };
  const persistence = { waits: [1, 1], signal: stop.signal, onWait };
  await assert.rejects(persist("x", failing(1, 300_000), persistence), { name: "AbortError" });
  assert.deepEqual(told, ["x: busy; trying again in 300 s"]);
});

Deno.test("long waits are told", async () => {
  const told: string[] = [];
  const stop = new AbortController();
  const onWait = (line: string) => {
    told.push(line);
    stop.abort();
  };
  const persistence = { waits: [1, 60_000], signal: stop.signal, onWait };
  await assert.rejects(persist("Cannot x", failing(9), persistence), { name: "AbortError" });
  assert.deepEqual(told, ["Cannot x: busy; trying again in 60 s"]);
});
