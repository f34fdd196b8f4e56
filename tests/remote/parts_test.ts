import assert from "node:assert/strict";
import { RemoteError, UsageError } from "../../src/errors.ts";
import { acceptanceRate, counted, together, total } from "../../src/remote/acceptance.ts";
import { between, countersIn } from "../../src/remote/counters.ts";
import { endpointOf } from "../../src/remote/endpoint.ts";
import { infoOf, settingText, speculationText } from "../../src/remote/reading.ts";
import { openServer } from "../../src/remote/server.ts";
import { recorded } from "./playback.ts";

const NO_ENV = () => undefined;

Deno.test("addresses: the API is under /v1, or where a path says", () => {
  const cases: [address: string, root: string, api: string][] = [
    ["http://127.0.0.1:8000", "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"],
    ["http://127.0.0.1:8000/", "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"],
    ["http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"],
    ["https://x.y/api/v1", "https://x.y/api", "https://x.y/api/v1"],
    ["https://x.y/v1beta/openai/", "https://x.y/v1beta/openai", "https://x.y/v1beta/openai"],
  ];
  for (const [address, root, api] of cases) {
    const endpoint = endpointOf(address, NO_ENV);
    assert.deepEqual([endpoint.root, endpoint.api], [root, api], address);
  }
});

Deno.test("addresses that are none are refused, and a password is not repeated", () => {
  const message = (address: string) => {
    try {
      endpointOf(address, NO_ENV);
    } catch (error) {
      assert.ok(error instanceof UsageError);
      return error.message;
    }
    return "";
  };
  for (const address of ["localhost:8000", "8000", "ftp://x.y", ""]) {
    assert.match(message(address), /^Cannot use "--remote .*": allowed is an address such as http/);
  }
  assert.match(message("http://x.y/v1?key=a"), /more than host, port and path/);
  const secret = message("http://me:secret@x.y");
  assert.match(secret, /EYRIE_REMOTE_KEY/);
  assert.doesNotMatch(secret, /secret/);
});

Deno.test("a server that accepts the connection and says nothing is given up, with a reason", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const accepted = listener.accept();
  const { port } = listener.addr as Deno.NetAddr;
  const endpoint = endpointOf(`http://127.0.0.1:${port}`, NO_ENV);
  const { signal } = new AbortController();
  await assert.rejects(openServer(endpoint, { signal, modelsMs: 100 }), (error) => {
    assert.ok(error instanceof RemoteError);
    assert.match(
      error.message,
      /^Cannot use "http:.*": it has not said which models it serves within 0.1 s$/,
    );
    return true;
  });
  const stopped = AbortSignal.abort(new Error("stopped"));
  await assert.rejects(openServer(endpoint, { signal: stopped }), /stopped/);
  (await accepted).close();
  listener.close();
});

Deno.test("a key for OpenAI goes to OpenAI alone", () => {
  const env = (values: Record<string, string>) => (name: string) => values[name];
  const both = env({ EYRIE_REMOTE_KEY: "mine", OPENAI_API_KEY: "theirs" });
  const openai = env({ OPENAI_API_KEY: "theirs" });
  assert.equal(endpointOf("http://x.y", both).key, "mine");
  assert.equal(endpointOf("http://x.y", openai).key, undefined);
  assert.equal(endpointOf("https://api.openai.com/v1", openai).key, "theirs");
  assert.equal(endpointOf("https://api.openai.com/v1", both).key, "mine");
  assert.equal(endpointOf("https://api.openai.com.evil.org/v1", openai).key, undefined);
  assert.equal(endpointOf("http://api.openai.com/v1", openai).key, undefined, "not encrypted");
  assert.equal(endpointOf("http://x.y", env({ EYRIE_REMOTE_KEY: "" })).key, undefined);
});

Deno.test("counters: vLLM's names with any prefix, engines added, others left", () => {
  const before = countersIn(recorded("vllm_metrics_before.txt"));
  const after = countersIn(recorded("vllm_metrics_after.txt"));
  assert.deepEqual(before, { drafts: 1000, draftTokens: 3000, acceptedTokens: 1400 });
  assert.ok(before && after);
  const acceptance = between(before, after);
  assert.deepEqual(acceptance, {
    source: "metrics",
    drafts: 3,
    draftTokens: 9,
    acceptedTokens: 4,
    acceptLength: 1 + 4 / 3,
  });
  assert.equal(between(after, before), undefined, "it was started anew");
  assert.deepEqual(
    countersIn(
      'eyrie:spec_decode_num_drafts_total{model_name="a}b",engine="0"} 2\n' +
        'eyrie:spec_decode_num_drafts_total{model_name="a\\"b",engine="1"} 3 1787366173\n' +
        "llamacpp:spec_decode_num_draft_tokens 9\nspec_decode_num_accepted_tokens_total 7\n",
    ),
    { drafts: 5, draftTokens: 9, acceptedTokens: 0 },
  );
  assert.equal(countersIn("<html>no metrics</html>"), undefined);
});

Deno.test("server_info: SGLang's arguments, the state that holds now before those of the start", () => {
  const info = JSON.parse(recorded("sglang_server_info.json"));
  const reading = infoOf(info);
  assert.equal(reading.acceptLength, 2.7125);
  assert.equal(reading.maxRunning, 48);
  assert.equal(
    speculationText(reading.speculation),
    "EAGLE3 with AngelSlim/Qwen3-8B_eagle3, 3 steps",
  );
  const now = infoOf({
    ...info,
    internal_states: [{ speculative_num_steps: 7, speculative_num_draft_tokens: 8 }],
  });
  assert.deepEqual([now.speculation?.numSteps, now.acceptLength], [7, undefined]);
  const tree = { ...info, internal_states: [], speculative_eagle_topk: 4 };
  assert.equal(settingText(infoOf(tree).speculation), "EAGLE3, 3 steps, topk 4, 4 draft tokens");
  const adaptive = infoOf({ ...info, speculative_adaptive: true });
  assert.equal(settingText(adaptive.speculation), "EAGLE3, adaptive");
  assert.equal(settingText(infoOf({ speculative_algorithm: null }).speculation), "no drafts");
  assert.equal(settingText(infoOf({ internal_states: "x" }).speculation), "no drafts");
});

Deno.test("acceptance: sums only where all answers tell, rounds from a server that counted the same", () => {
  const one = counted("answer", { drafts: 4, draftTokens: 12, acceptedTokens: 6 });
  const none = counted("answer", { drafts: 0, draftTokens: 0, acceptedTokens: 0 });
  assert.equal(one.acceptLength, 2.5);
  assert.deepEqual([none.acceptLength, acceptanceRate(none)], [undefined, undefined]);
  assert.equal(acceptanceRate(one), 0.5);
  assert.deepEqual(total([one, one, none]), {
    source: "answer",
    drafts: 8,
    draftTokens: 24,
    acceptedTokens: 12,
    acceptLength: 2.5,
  });
  assert.equal(total([one, undefined]), undefined);
  assert.equal(total([]), undefined);
  const bare = counted("answer", { draftTokens: 12, acceptedTokens: 6 });
  assert.equal(total([one, bare])?.acceptLength, undefined, "rounds of one are not told");
  const same = counted("metrics", { drafts: 4, draftTokens: 12, acceptedTokens: 6 });
  const more = counted("metrics", { drafts: 9, draftTokens: 27, acceptedTokens: 20 });
  assert.equal(together(bare, same)?.acceptLength, 2.5);
  assert.equal(together(bare, more)?.acceptLength, undefined, "others' drafts are among them");
  assert.equal(together(undefined, more), more);
  assert.equal(together(one, more), one);
});
