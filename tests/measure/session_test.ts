import assert from "node:assert/strict";
import { presetJson } from "../../src/engine/schedule/presets.ts";
import type { BenchRequest, Case, Setting } from "../../src/measure/runner.ts";
import { openBench } from "../../src/measure/session.ts";
import { openWorkload } from "../../src/measure/workload/workload.ts";
import { UsageError } from "../../src/errors.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";

const SETTINGS: Setting[] = [
  { kind: "plain" },
  { kind: "static", numSteps: 3 },
  { kind: "policy", policy: { policy: "ema", options: presetJson("conservative") } },
];
const POLICY: Setting = {
  kind: "policy",
  policy: { policy: "ema", options: { candidate_steps: [1, 2], warmup_batches: 0 } },
};
const TREE: Setting = { kind: "tree", tier: { depth: 3, width: 2, rows: 6 } };

function request(workload: string, one: Partial<Case>, rest: Partial<BenchRequest> = {}) {
  const cell = { workload, batch: 2, outputTokens: 16, temperature: 0, depth: 0, ...one };
  const read = (path: string) => Deno.readTextFileSync(path);
  return {
    cell,
    request: {
      workload: openWorkload(workload, read),
      cases: [cell],
      settings: SETTINGS,
      ...rest,
    } satisfies BenchRequest,
  };
}

async function run(asked: ReturnType<typeof request>) {
  using session = await openBench(asked.request);
  const results = [];
  for (const setting of asked.request.settings) {
    const spec = { ...asked.cell, setting, repeat: 0, seed: 3 };
    results.push(await session.runCell(spec, new AbortController().signal));
  }
  return { subject: session.subject, results };
}

Deno.test("a cell on the real engine: equal outputs at every setting, rounds that add up", async () => {
  const { subject, results } = await run(
    request("fledgling:all", { depth: 40 }, {
      settings: EXHAUSTIVE ? [...SETTINGS, TREE, POLICY] : [{ kind: "plain" }, TREE, POLICY],
    }),
  );
  assert.equal(subject.simulated, false);
  const [plain, ...others] = results.map(({ requests }) => requests.map((one) => one.outputHash));
  for (const other of others) assert.deepEqual(other, plain);
  for (const { tokens, seconds, rounds, prefills, requests, tierShare } of results) {
    const computed = requests.reduce((sum, { prompt }) => sum + prompt.tokens, 0);
    assert.ok(prefills.tokens === computed && prefills.ms > 0 && prefills.ms < seconds * 1000);
    assert.equal(requests.length, 8);
    assert.ok(tokens > 8 && rounds.length > 0);
    const shares = Object.values(tierShare).reduce((sum, share) => sum + share, 0);
    assert.ok(Math.abs(shares - 1) < 1e-9);
    for (const { batch, accepted, numSteps, ms, draftMs, verifyMs } of rounds) {
      assert.equal(accepted.length, batch);
      assert.ok(accepted.every((count) => count <= numSteps));
      assert.ok(verifyMs > 0 && draftMs + verifyMs <= ms);
    }
  }
});

Deno.test("random weights with drawn acceptance: as many accepted as asked for", async () => {
  const folder = await Deno.makeTempDir();
  const shape = { hidden_size: 64, intermediate_size: 128, num_attention_heads: 4 };
  const shared = { model_type: "llama", ...shape, num_key_value_heads: 2, vocab_size: 256 };
  const limits = { max_position_embeddings: 256, rms_norm_eps: 1e-5 };
  const write = (name: string, config: object) => {
    Deno.writeTextFileSync(
      `${folder}/${name}`,
      JSON.stringify({ ...shared, ...limits, ...config }),
    );
    return `${folder}/${name}`;
  };
  const random = {
    target: write("target.json", { architectures: ["LlamaForCausalLM"], num_hidden_layers: 6 }),
    draft: write("draft.json", {
      architectures: ["LlamaForCausalLMEagle3"],
      num_hidden_layers: 1,
      draft_vocab_size: 128,
    }),
  };
  const sized = { promptTokens: 8, outputTokens: 100 };
  const { subject, results } = await run(request("random", sized, {
    model: { random },
    speculation: { simulateAcceptance: [1, 0] },
  }));
  assert.equal(subject.simulated, true);
  for (const { rounds } of results) {
    const drafted = rounds.filter(({ numSteps }) => numSteps > 0);
    assert.ok(drafted.every(({ accepted }) => accepted.every((count) => count === 1)));
  }
  assert.ok(results[1]?.rounds.every(({ numSteps }) => numSteps === 3));
  await Deno.remove(folder, { recursive: true });
});

Deno.test("an answer of one token has no time per output token", async () => {
  const { results } = await run(
    request("fledgling:count", { batch: 1, outputTokens: 1 }, { settings: [{ kind: "plain" }] }),
  );
  assert.ok(results[0]?.requests.length);
  for (const { ttftMs, tpotMs } of results[0]!.requests) {
    assert.ok(ttftMs > 0);
    assert.equal(tpotMs, null);
  }
});

Deno.test("drafting without a draft cannot be measured", async () => {
  const { request: asked } = request("fledgling:count", {}, { model: { draft: "none" } });
  await assert.rejects(openBench(asked), UsageError);
});

Deno.test("a case that the context does not hold is refused before others are measured", async () => {
  const settings: Setting[] = [{ kind: "plain" }];
  const refused = async (one: Partial<Case>, message: string) => {
    const { request: asked, cell } = request("random", { promptTokens: 4, ...one }, { settings });
    const fits = { ...cell, promptTokens: 4, outputTokens: 4, depth: 0 };
    const cases = [fits, { ...cell, outputTokens: 100 }];
    await assert.rejects(openBench({ ...asked, cases }), { name: "UsageError", message });
  };
  const refusal = (prompt: number, more = "") =>
    `Cannot measure batch 2, ${prompt} prompt tokens, 100 output tokens, temperature 0${more}: ` +
    "the context holds 1024 tokens";
  await refused({ promptTokens: 925 }, refusal(925));
  await refused({ depth: 1000 }, refusal(4, ", depth 1000"));
});
