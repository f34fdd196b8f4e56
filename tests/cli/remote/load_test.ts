import assert from "node:assert/strict";
import { playback, sglang, stream, vllm } from "../../remote/playback.ts";
import { serve } from "../../serve/server.ts";
import { fakeIo } from "../fake.ts";
import { eyrie } from "./run.ts";

const QUICK = "--num-requests 4 --concurrency 2 --repeat 1 --warmup 1 --format json".split(" ");

const load = (url: string, ...flags: readonly string[]) =>
  eyrie(["bench", "load", "--remote", url, ...QUICK, ...flags]);

Deno.test("bench load --remote with eyrie serve: one column, its tokens and acceptance exact", async () => {
  await using server = await serve();
  const { code, out, err } = await load(
    server.url,
    "--max-tokens",
    "24",
    "--goodput",
    "ttft:60000",
  );
  assert.equal(code, 0, err);
  const rows = JSON.parse(out);
  assert.equal(rows.length, 1);
  const [row] = rows;
  assert.deepEqual(
    [row.backend, row.label, row.model_id, row.max_batch, row.completed, row.peak_queue],
    ["eyrie", "EAGLE3, 3 steps", "fledgling", 4, 4, null],
  );
  assert.equal(row.device, `eyrie at ${server.url}`);
  for (const [n, itls] of row.itls.entries()) {
    assert.equal(itls.length, row.output_lens[n] - 1, "every token has its time");
  }
  const { spec_decode_draft_tokens: drafted, spec_decode_accepted_tokens: accepted } = row;
  // A round in which an answer ended counts its drafts up to the end.
  assert.ok(accepted > 0 && drafted > accepted && drafted <= 3 * row.spec_decode_num_drafts);
  assert.equal(row.accept_length, 1 + accepted / row.spec_decode_num_drafts);
  assert.equal(row.spec_decode_acceptance_rate, accepted / drafted * 100);
  assert.ok(row.mean_ttft_ms > 0 && row.request_goodput > 0);
  // The row counts only this request's drafts, while the server also counts those of the warm-up.
  const before = await (await fetch(`${server.url}/metrics`)).text();
  const total = /^eyrie:spec_decode_num_draft_tokens_total\S* (\d+)/m.exec(before)?.[1];
  assert.ok(Number(total) > drafted);
});

Deno.test("bench load --remote: random prompts are token ids of a length, answers of a length", async () => {
  await using server = await serve();
  const flags = "--workload random --prompt-tokens 20 --output-tokens 6".split(" ");
  const { code, out, err } = await load(server.url, ...flags);
  assert.equal(code, 0, err);
  const [row] = JSON.parse(out);
  assert.deepEqual(row.input_lens, [20, 20, 20, 20]);
  assert.deepEqual(row.output_lens, [6, 6, 6, 6]);
  assert.ok(row.spec_decode_draft_tokens > 0);
  assert.ok(row.accept_length >= 1, "rounds are counted by the server");
});

Deno.test("bench load --remote with vLLM: counters before and after", async () => {
  await using server = vllm();
  const { code, out, err } = await load(server.url, "--warmup", "0");
  assert.equal(code, 0, err);
  const [row] = JSON.parse(out);
  assert.deepEqual(
    [row.backend, row.label, row.draft_id, row.max_batch],
    ["vllm", "as it is served", "counted, not named", null],
  );
  assert.deepEqual(
    [row.spec_decode_num_drafts, row.spec_decode_draft_tokens, row.spec_decode_accepted_tokens],
    [3, 9, 4],
  );
  assert.deepEqual([row.accept_length, row.input_lens[0], row.output_lens[0]], [1 + 4 / 3, 17, 7]);
  assert.deepEqual(row.itls[0].filter((itl: number) => itl === 0).length >= 4, true);
  assert.equal(row.itls[0].length, 6);
  const { temperature, max_tokens, ignore_eos } = server.bodies()[0];
  assert.deepEqual([temperature, max_tokens, ignore_eos], [0, 128, undefined]);
});

Deno.test("bench load --remote with OpenAI's own server: the limit has the name that its newer models take", async () => {
  await using server = refusing(() => undefined);
  const { fetch } = globalThis;
  globalThis.fetch = (url, init) =>
    fetch(String(url).replace("https://api.openai.com", server.url), init);
  try {
    const { code, err } = await load("https://api.openai.com", "--warmup", "0");
    assert.equal(code, 0, err);
  } finally {
    globalThis.fetch = fetch;
  }
  const { max_tokens, max_completion_tokens } = server.bodies()[0];
  assert.deepEqual([max_tokens, max_completion_tokens], [undefined, 128]);
});

Deno.test("bench load --remote with a server that counts nothing: prompts are unknown, chunks are counted", async () => {
  const delta = (content: string, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
  await using server = playback(({ path }) =>
    path === "/v1/models"
      ? JSON.stringify({ data: [{ id: "m" }] })
      : path === "/v1/chat/completions"
      ? stream(delta("a"), delta("b"), delta("c", "stop"), "data: [DONE]\n\n")
      : undefined
  );
  const { code, out, err } = await load(server.url);
  assert.equal(code, 0, err);
  const [row] = JSON.parse(out);
  assert.deepEqual(
    [row.input_lens[0], row.total_input_tokens, row.total_token_throughput],
    [null, null, null],
  );
  assert.equal(row.output_lens[0], 3);
});

Deno.test("bench load --remote with SGLang: its mean accept length; the table and the page", async () => {
  await using server = sglang();
  const json = await load(server.url);
  const [row] = JSON.parse(json.out);
  assert.deepEqual(
    [row.backend, row.label, row.draft_id, row.max_batch],
    ["sglang", "EAGLE3, 3 steps", "AngelSlim/Qwen3-8B_eagle3", 48],
  );
  assert.deepEqual([row.accept_length, row.spec_decode_num_drafts], [2.7125, null]);
  const table = await load(server.url, "--format", "md");
  assert.match(
    table.out,
    /^model Qwen\/Qwen3-8B, draft AngelSlim\/Qwen3-8B_eagle3, device sglang at/,
  );
  assert.match(table.out, /\| policy +\| tokens\/s \|.*\| accept length \|/);
  assert.equal(table.out.match(/^\| EAGLE3, 3 steps/gm)?.length, 1);
  assert.doesNotMatch(table.out, /A\/A|Mean draft steps|peak queue|switches|over best/);
  const page = await load(server.url, "--format", "html");
  assert.match(page.out, /<h1>eyrie bench load<\/h1>[^]*EAGLE3, 3 steps/);
  assert.match(page.out, /Throughput/);
  assert.doesNotMatch(page.out, /Draft steps by batch size|>Queue<|NaN/);
});

/** A server that gives the n-th question a short answer, or refuses it with a status, n from 1. */
function refusing(refusalOf: (n: number) => number | undefined) {
  let asked = 0;
  return playback(({ path }) => {
    if (path === "/v1/models") return JSON.stringify({ data: [{ id: "m" }] });
    if (path !== "/v1/chat/completions") return undefined;
    const status = refusalOf(++asked);
    return status === undefined
      ? stream('data: {"choices":[{"delta":{"content":"x"}}]}\n\n', "data: [DONE]\n\n")
      : new Response("{}", { status, headers: { "retry-after": "2" } });
  });
}

Deno.test("bench load --remote: refused requests are counted as failed, and the run goes on", async () => {
  await using server = refusing((n) => [, , 429, 503][n]);
  const flags = ["--concurrency", "1", "--warmup", "0"];
  const { code, out, err } = await load(server.url, ...flags);
  assert.equal(code, 0, err);
  assert.match(err, /tokens\/s, end to end p50 \d+ ms, 2 failed\n$/);
  const [row] = JSON.parse(out);
  assert.deepEqual([row.num_prompts, row.completed, row.failed], [4, 2, 2]);
  assert.deepEqual(
    [row.ttfts, row.output_lens, row.output_hashes].map(({ length }) => length),
    [2, 2, 2],
  );
  assert.match(row.errors[0], /^Cannot get an answer of .*: it is busy \(429\), try again in 2 s$/);
  assert.match(row.errors[1], /: it failed \(503\)/);
  await using again = refusing((n) => [, , 429, 503][n]);
  const table = await load(again.url, ...flags, "--format", "md");
  assert.match(
    table.out,
    /\n1 in flight: 2 of 4 requests failed, the first: Cannot get an answer of/,
  );
});

Deno.test("bench load --remote: where all requests fail, one line; what was measured is shown", async () => {
  await using server = refusing((n) => n > 4 ? 429 : undefined);
  const flags = ["--repeat", "2", "--concurrency", "1", "--warmup", "0"];
  const { code, out, err } = await load(server.url, ...flags);
  assert.equal(code, 1, err);
  assert.match(
    err,
    /\neyrie: Cannot measure "1 in flight": no request was answered; the first: cannot get an answer of .*: it is busy \(429\), try again in 2 s\n$/,
  );
  const rows = JSON.parse(out);
  assert.deepEqual([rows.length, rows[0].accept_length, rows[0].backend], [1, null, "openai"]);
});

Deno.test("bench load --remote: Ctrl+C ends it with what is there", async () => {
  let posts = 0;
  const io = fakeIo({ stdin: "" });
  await using server = playback(({ path }) => {
    if (path === "/v1/models") return JSON.stringify({ data: [{ id: "m" }] });
    if (path !== "/v1/chat/completions") return undefined;
    if (++posts === 6) io.interrupt();
    return stream('data: {"choices":[{"delta":{"content":"x"}}]}\n\n', "data: [DONE]\n\n");
  });
  const args = [
    "bench",
    "load",
    "--remote",
    server.url,
    ...QUICK,
    "--repeat",
    "2",
    "--warmup",
    "0",
  ];
  const { code, out, err } = await eyrie(args, { io });
  assert.equal(code, 130, err);
  assert.match(err, /warning: stopped: the measurement that was running is left out/);
  assert.equal(JSON.parse(out).length, 1);
});
