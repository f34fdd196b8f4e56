import assert from "node:assert/strict";
import { startLines } from "../../src/cli/serve/start_lines.ts";
import { user } from "./server.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

/** `eyrie serve` in a separate process. */
function spawn(...flags: readonly string[]) {
  return spawnBy([], ...flags);
}

/** @param deno further flags of Deno. */
function spawnBy(deno: readonly string[], ...flags: readonly string[]) {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", ...deno, MAIN, "serve", "--port", "0", "--max-batch", "2", ...flags],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    env: { EYRIE_API_KEY: "" },
  }).spawn();
  const errors = lines(child.stderr);
  return { child, errors, output: lines(child.stdout) };
}

/** The lines of a stream as they come. */
async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let held = "";
  for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
    const parts = (held + piece).split("\n");
    held = parts.pop() ?? "";
    yield* parts;
  }
}

async function next(of: AsyncGenerator<string>): Promise<string> {
  const { value } = await of.next();
  return value ?? "";
}

const STARTED = {
  model: "fledgling/target",
  draft: "fledgling/eagle3",
  maxBatch: 2,
  // A context of 1,024 tokens each, the longest last round and the rows of one more, in pages of 16.
  kvTokens: 2 * 1056,
  requestTokens: 1024,
};

Deno.test("serve's first lines have the addresses for clients; all addresses is none of them", () => {
  assert.deepEqual(startLines({ ...STARTED, url: "http://0.0.0.0:80", draft: undefined }), [
    'model "fledgling/target" answers 2 requests at once, without a draft model',
    "KV cache: 2,112 tokens, 2.1 requests of 1,024 tokens",
    "OpenAI base URL:    http://127.0.0.1:80/v1",
    "Anthropic base URL: http://127.0.0.1:80",
    "ollama host:        http://127.0.0.1:80",
    "page to talk to it: http://127.0.0.1:80/",
  ]);
  assert.equal(
    startLines({ ...STARTED, url: "http://[::]:80" })[5],
    "page to talk to it: http://[::1]:80/",
  );
});

Deno.test("eyrie serve: 503 with progress while it loads, then answers; SIGTERM ends it with 0", async () => {
  const { child, errors, output } = spawn();
  const url = /^(http:\S+) listens/.exec(await next(errors))?.[1] ?? assert.fail();
  const loading = await fetch(`${url}/health`);
  assert.deepEqual([loading.status, (await loading.json()).status], [503, "loading"]);
  const early = await fetch(`${url}/v1/models`);
  assert.deepEqual([early.status, early.headers.get("retry-after")], [503, "1"]);
  assert.equal((await early.json()).error.message, "Loading model");
  assert.equal(await next(output), url);
  for (const line of startLines({ ...STARTED, url })) {
    let said = await next(errors);
    while (said !== line && said !== "") said = await next(errors);
    assert.equal(said, line);
  }
  assert.deepEqual(await (await fetch(`${url}/health`)).json(), { status: "ok" });
  // A stream that is running when the signal comes is completed.
  const body = JSON.stringify({ ...user("Count from 3 to 20."), max_tokens: 40, stream: true });
  const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", body });
  child.kill("SIGTERM");
  const text = await response.text();
  assert.match(text, /"finish_reason":"(stop|length)"[^]*\[DONE\]/);
  const { code, signal } = await child.status;
  assert.deepEqual([code, signal], [0, null]);
  const rest = [...await Array.fromAsync(errors)];
  assert.ok(!rest.some((line) => /abort|Deno.serve|at file/.test(line)), rest.join("\n"));
  await Array.fromAsync(output);
});

Deno.test("eyrie serve without deno.json, as a bundle: who leaves is seen, and Deno warns of nothing", async () => {
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const { child, errors, output } = spawnBy(["--no-config", "--no-lock", "--import-map", config]);
  const url = await next(output);
  const ask = (fields: unknown, signal?: AbortSignal) => {
    const body = JSON.stringify({ ...user("Count from 3 to 20."), ...fields as object });
    return fetch(`${url}/v1/chat/completions`, { method: "POST", body, ...signal && { signal } });
  };
  const busy = async () => {
    const slots = await (await fetch(`${url}/slots`)).json();
    return slots.some((slot: { is_processing: boolean }) => slot.is_processing);
  };
  const { choices } = await (await ask({ max_tokens: 4 })).json();
  assert.equal(choices[0].finish_reason, "length");
  assert.match(await (await ask({ max_tokens: 4, stream: true })).text(), /\[DONE\]/);
  for (const stream of [false, true]) {
    const leaving = new AbortController();
    const asked = ask({ max_tokens: 4000, ignore_eos: true, stream }, leaving.signal)
      .then((response) => response.text());
    while (!await busy()) await new Promise((resolve) => setTimeout(resolve, 5));
    leaving.abort();
    await assert.rejects(asked);
    while (await busy()) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const metrics = await (await fetch(`${url}/metrics`)).text();
  assert.match(metrics, /request_success_total\{[^}]*finished_reason="abort"[^}]*\} 2\n/);
  child.kill("SIGTERM");
  assert.equal((await child.status).code, 0);
  const said = await Array.fromAsync(errors);
  assert.ok(!said.some((line) => /abort|Deno.serve/.test(line)), said.join("\n"));
  await Array.fromAsync(output);
});

Deno.test("eyrie serve beyond this machine without a key says so, also when quiet; SIGHUP ends it with 0", async () => {
  const { child, errors, output } = spawn("--host", "0.0.0.0", "--quiet");
  assert.match(
    await next(errors),
    /^warning: everybody who reaches http:\/\/0\.0\.0\.0:\d+ may use/,
  );
  child.kill("SIGHUP");
  assert.equal((await child.status).code, 0);
  await Array.fromAsync(errors);
  await Array.fromAsync(output);
});

Deno.test("eyrie serve where somebody else listens, and a model that is none: exit 2", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = taken.addr as Deno.NetAddr;
  for (const flags of [["--port", String(port)], ["--model", "/no/such/model"]]) {
    const { child, errors, output } = spawn(...flags);
    const said = await Array.fromAsync(errors);
    assert.match(said.at(-1) ?? "", /^eyrie: Cannot (listen on|open)/);
    assert.equal((await child.status).code, 2);
    await Array.fromAsync(output);
  }
});

Deno.test("eyrie serve with a policy that is none: exit 2, and nothing listens before", async () => {
  const { child, errors, output } = spawn("--policy", "hybird");
  const said = await Array.fromAsync(errors);
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^eyrie: Cannot use "--policy hybird": .* did you mean hybrid\?/);
  assert.equal((await child.status).code, 2);
  await Array.fromAsync(output);
});
