import assert from "node:assert/strict";
import { playback, sglang, stream, vllm } from "../../remote/playback.ts";
import { fakeServer } from "../../serve/fake_server.ts";
import { generatedAlone } from "../../serve/cli_lines.ts";
import { serve } from "../../serve/server.ts";
import { fakeIo } from "../fake.ts";
import { eyrie } from "./run.ts";

const MODELS = JSON.stringify({ data: [{ id: "m", owned_by: "someone" }] });

Deno.test("generate --remote with vLLM: its text, its counts, acceptance by its counters", async () => {
  await using server = vllm();
  const { code, out, err } = await eyrie(["generate", "--remote", server.url, "Why?"], {
    key: "secret",
  });
  assert.equal(code, 0, err);
  assert.equal(out, "The sky is blue today.\n");
  assert.match(
    err,
    /^7 tokens, [\d.]+ (?:ms|s) after the first, .*, prompt 17 tokens \(16 cached\), 2\.33 tokens a drafting round, 44\.4% of drafts accepted by the server's counters\n$/,
  );
  assert.deepEqual(server.bodies(), [{
    model: "meta-llama/Llama-3.1-8B-Instruct",
    messages: [{ role: "user", content: "Why?" }],
    max_tokens: 512,
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
  }]);
  assert.ok(server.heard.every(({ key }) => key === "Bearer secret"));
  assert.ok(!server.heard.some(({ path }) => path === "/server_info"), "vLLM has none");
});

for (const path of ["/server_info", "/get_server_info"]) {
  Deno.test(`generate --remote with SGLang: settings and mean length of ${path}`, async () => {
    await using server = sglang(path);
    const { code, out, err } = await eyrie(["generate", "--remote", server.url, "--json", "Why?"]);
    assert.equal(code, 0, err);
    const json = JSON.parse(out);
    assert.deepEqual([json.text, json.reasoning], ["Blue.", "They want a colour."]);
    assert.deepEqual(json.usage, { prompt_tokens: 11, completion_tokens: 8, cached_tokens: null });
    assert.deepEqual(json.speculative, {
      algorithm: "EAGLE3",
      draft: "AngelSlim/Qwen3-8B_eagle3",
      num_steps: 3,
      eagle_topk: 1,
      num_draft_tokens: 4,
      adaptive: false,
      source: "server_info",
      drafts: null,
      draft_tokens: null,
      accepted_tokens: null,
      mean_accept_length: 2.713,
      draft_acceptance_rate: null,
    });
    assert.deepEqual(json.server, { url: server.url, kind: "sglang", model: "Qwen/Qwen3-8B" });
  });
}

Deno.test("generate --remote --stats: a fact a line, and reasoning on a terminal alone", async () => {
  await using server = sglang();
  const io = fakeIo({ stdin: "", terminal: true });
  const { out, err } = await eyrie(["generate", "--remote", server.url, "--stats", "Why?"], { io });
  assert.equal(out, "Blue.\n");
  assert.match(err, /They want a colour\.[^]*\nmodel {7}Qwen\/Qwen3-8B\nserver {6}sglang at http/);
  assert.match(err, /\nspeculation EAGLE3 with AngelSlim\/Qwen3-8B_eagle3, 3 steps\n/);
  assert.match(err, /\nacceptance {2}2\.71 tokens a drafting round on average since the server/);
});

Deno.test("generate --remote: every wish is a field, what is not said is left out", async () => {
  await using server = playback(({ path }) =>
    path === "/v1/models"
      ? MODELS
      : path.startsWith("/v1/")
      ? stream('data: {"choices":[{"delta":{"content":"{}"},"finish_reason":"stop"}]}\n\n')
      : undefined
  );
  const flags = "--temperature 0.5 --top-k 4 --top-p 0.9 --min-p 0.1 --repetition-penalty 1.1 " +
    "--frequency-penalty 0.5 --presence-penalty -0.5 --logit-bias 7=-1 --seed 3 --max-tokens 9 " +
    "--stop END --ignore-eos --think off --template-arg x=1 --system Be. --json-object";
  const { code, err } = await eyrie(
    ["generate", "--remote", server.url, ...flags.split(" "), "-m", "m", "Hi."],
  );
  assert.equal(code, 0, err);
  assert.match(
    err,
    /^1 piece, .*, acceptance not reported\n$/,
    "without usage nothing is counted",
  );
  assert.deepEqual(server.bodies()[0], {
    model: "m",
    temperature: 0.5,
    top_k: 4,
    top_p: 0.9,
    min_p: 0.1,
    seed: 3,
    max_tokens: 9,
    repetition_penalty: 1.1,
    frequency_penalty: 0.5,
    presence_penalty: -0.5,
    logit_bias: { 7: -1 },
    stop: ["END"],
    ignore_eos: true,
    chat_template_kwargs: { enable_thinking: false, thinking: false, x: 1 },
    response_format: { type: "json_object" },
    messages: [{ role: "system", content: "Be." }, { role: "user", content: "Hi." }],
    stream: true,
    stream_options: { include_usage: true },
  });
  await eyrie(["generate", "--remote", server.url, "--raw", "Once"]);
  const [, raw] = server.bodies();
  assert.deepEqual([raw.prompt, raw.messages, raw.temperature], ["Once", undefined, undefined]);
  assert.equal(server.heard.at(-2)?.path, "/v1/completions");
});

Deno.test("generate --remote: acceptance told with the answer, as llama-server and vLLM can", async () => {
  const cases: [last: object, told: RegExp][] = [
    [{ timings: { draft_n: 8, draft_n_accepted: 6 } }, /, 75\.0% of drafts accepted\n$/],
    [{ timings: { draft_n: 0, draft_n_accepted: 0 } }, /, no drafts\n$/],
    [
      {
        metrics: {
          speculative_decoding: {
            num_spec_steps: 4,
            num_draft_tokens: 12,
            num_accepted_draft_tokens: 6,
          },
        },
      },
      /, 2\.50 tokens a drafting round, 50\.0% of drafts accepted\n$/,
    ],
    [
      {
        usage: {
          completion_tokens_details: {
            accepted_prediction_tokens: 0,
            rejected_prediction_tokens: 0,
          },
        },
      },
      /, acceptance not reported\n$/,
    ],
  ];
  for (const [last, told] of cases) {
    const event = { choices: [{ delta: { content: "a" }, finish_reason: "stop" }], ...last };
    await using server = playback(({ path }) =>
      path === "/v1/models"
        ? MODELS
        : path === "/v1/chat/completions"
        ? stream(`data: ${JSON.stringify(event)}\n\n`, "data: [DONE]\n\n")
        : undefined
    );
    const { err } = await eyrie(["generate", "--remote", server.url, "Hi."]);
    assert.match(err, told);
  }
});

Deno.test("generate --remote with eyrie serve: text and acceptance of the CLI's own", async () => {
  await using server = await serve();
  const prompt = "Count from 3 to 9.";
  const alone = await generatedAlone(prompt);
  const { code, out, err } = await eyrie(
    ["generate", "--remote", server.url, "--json", "--temperature", "0", prompt],
  );
  assert.equal(code, 0, err);
  const json = JSON.parse(out);
  assert.equal(json.text, alone.text);
  assert.equal(json.usage.completion_tokens, alone.usage.completion_tokens);
  const { draft_tokens, accepted_tokens, rounds } = alone.speculative;
  assert.ok(rounds > 0 && accepted_tokens > 0);
  assert.deepEqual(
    [json.speculative.draft_tokens, json.speculative.accepted_tokens, json.speculative.drafts],
    [draft_tokens, accepted_tokens, rounds],
  );
  assert.deepEqual([json.speculative.num_steps, json.speculative.source], [3, "answer"]);
});

Deno.test("generate --remote: Ctrl+C ends the request, what came stays, exit 130", async () => {
  const left = Promise.withResolvers<void>();
  await using server = playback(({ path }) => {
    if (path === "/v1/models") return MODELS;
    if (path !== "/v1/chat/completions") return undefined;
    const text = 'data: {"choices":[{"delta":{"content":"One two"}}]}\n\n';
    return new Response(
      new ReadableStream({
        start: (to) => to.enqueue(new TextEncoder().encode(text)),
        cancel: () => left.resolve(),
      }),
      { headers: { "content-type": "text/event-stream" } },
    );
  });
  const io = fakeIo({ stdin: "" });
  const running = eyrie(["generate", "--remote", server.url, "Hi."], { io });
  await io.seen("One two");
  io.interrupt();
  const { code, out } = await running;
  assert.deepEqual([code, out], [130, "One two\n"]);
  await left.promise;
});

Deno.test("generate --remote: Ctrl+C before an answer is exit 130 without a word", async () => {
  const asked = Promise.withResolvers<void>();
  const over = Promise.withResolvers<Response>();
  await using server = playback(() => {
    asked.resolve();
    return over.promise;
  });
  const io = fakeIo({ stdin: "" });
  const running = eyrie(["generate", "--remote", server.url, "Hi."], { io });
  await asked.promise;
  io.interrupt();
  assert.deepEqual(await running, { code: 130, out: "", err: "" });
  over.resolve(new Response());
});

Deno.test("eyrie run MODEL PROMPT --remote is generate's", async () => {
  await using server = await fakeServer();
  const args = ["run", "fledgling", "hi", "--remote", server.url, "--quiet"];
  assert.deepEqual(await eyrie(args), { code: 0, out: "answer 1\n", err: "" });
});

Deno.test("generate --remote: an answer that was cut says so, by whose limit, and that its JSON is incomplete", async () => {
  const event = { choices: [{ delta: { content: '{"a": [1, ' }, finish_reason: "length" }] };
  const usage = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 5 } };
  await using server = playback(({ path }) =>
    path === "/v1/models" ? MODELS : path === "/v1/chat/completions"
      ? stream(
        `data: ${JSON.stringify(event)}\n\n`,
        `data: ${JSON.stringify(usage)}\n\n`,
        "data: [DONE]\n\n",
      )
      : undefined
  );
  const last = async (...flags: string[]) => {
    const { code, err } = await eyrie(["generate", "--remote", server.url, ...flags, "Why?"]);
    assert.equal(code, 0, err);
    return err.trimEnd().split("\n").at(-1);
  };
  assert.equal(
    await last("-n", "5", "--json-object"),
    "The answer was cut at --max-tokens 5; a larger number allows more. Its JSON is incomplete.",
  );
  assert.equal(await last("-n", "8"), "The server cut the answer at 5 tokens, below --max-tokens.");
});
