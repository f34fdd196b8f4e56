import assert from "node:assert/strict";
import { UsageError } from "../../../src/errors.ts";
import type { SpeculationChoice } from "../../../src/engine/schedule/speculation_choice.ts";
import { type GenerateRequest, resultOf } from "../../../src/engine/schedule/events.ts";
import { statically } from "../../../src/engine/drafting.ts";
import { openEngine } from "../open.ts";
import { open } from "./open.ts";
import { engineInWorker } from "../../../src/engine/worker/client.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";

const TARGET = new URL("../../../models/fledgling/target/", import.meta.url);

const THREE_STEPS: SpeculationChoice = {
  numSteps: 3,
  allSteps: false,
};

function user(content: string) {
  return { messages: [{ role: "user", content }] } as const;
}

function request(promptIds: readonly number[], of: Partial<GenerateRequest> = {}): GenerateRequest {
  return { promptIds, sampling: GREEDY, maxTokens: 60, stop: [], ignoreEos: false, ...of };
}

/** The embedded model as a folder whose files `change` may replace. */
async function withModel(
  change: (folder: string) => Promise<void>,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    for await (const { name } of Deno.readDir(TARGET)) {
      await Deno.copyFile(new URL(name, TARGET), `${folder}/${name}`);
    }
    await change(folder);
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("an engine in a worker", async (t) => {
  const progress: string[] = [];
  await using engine = await open({
    limits: { maxBatch: 3 },
    speculation: { speculate: THREE_STEPS },
    hooks: { onProgress: ({ label }) => progress.push(label) },
  });
  using here = await openEngine({ hooks: { plan: statically(3) } });
  const prompts = ["Count from 3 to 20.", "Spell the word amber.", "What is 2 + 2?", "Hello!"];
  const ids = await Promise.all(prompts.map((prompt) => engine.encodePrompt(user(prompt))));

  await t.step("tells what an engine in this thread does", async () => {
    assert.ok(progress.length > 0);
    assert.deepEqual(
      [engine.info.name, engine.info.draftName, engine.info.contextLength, engine.info.tiers],
      [here.info.name, here.info.draftName, here.info.contextLength, {
        ...here.info.tiers,
        bytes: engine.info.tiers.bytes,
      }],
    );
    assert.deepEqual(Object.keys(engine.info), Object.keys(here.info));
    assert.deepEqual(ids[0], await here.encodePrompt(user(prompts[0] as string)));
    const result = await resultOf(engine.submit(request(ids[0] ?? [])));
    const { timing: _, ...expected } = await resultOf(here.submit(request(ids[0] ?? [])));
    const { timing: __, ...found } = result;
    assert.deepEqual(found, expected);
    assert.equal(engine.status.speculation.rounds, result.speculative.rounds);
  });

  await t.step("tokens as text, and what the engine does now", async () => {
    const text = "<|im_start|>amber, é";
    const whole = await engine.encodePrompt({ raw: text, addSpecialTokens: false });
    const [again, pieces] = [await engine.decode(whole), await engine.pieces(whole)];
    assert.deepEqual([again, pieces.length, pieces[0]], [text, whole.length, "<|im_start|>"]);
    await assert.rejects(engine.decode([99_999]), UsageError);
    const { pages, counts } = await engine.readStatus();
    assert.ok(pages.free <= pages.total && pages.total > 0);
    assert.deepEqual(counts, engine.status.counts);
    assert.ok(await engine.ping(AbortSignal.timeout(60_000)) >= 0);
  });

  await t.step("a prompt that the answer's beginning is a part of", async () => {
    const begun = await engine.encodePrompt({ ...user("Hello!"), begin: "Sure" });
    const plain = ids[3] ?? [];
    assert.deepEqual(begun.slice(0, plain.length), plain);
    assert.equal(await engine.decode(begun.slice(plain.length)), "Sure");
  });

  await t.step("four callers: one leaves, one is refused, two finish", async () => {
    const [left, refused, ...finished] = await Promise.allSettled([
      (async () => {
        for await (const event of engine.submit(request(ids[0] ?? [], { maxTokens: 400 }))) {
          if (event.kind === "round") return event.ids.length;
        }
      })(),
      resultOf(engine.submit(request([1, 2, 99_999]))),
      resultOf(engine.submit(request(ids[1] ?? []))),
      resultOf(engine.submit(request(ids[2] ?? [], { numSteps: 0 }))),
    ]);
    assert.deepEqual(left, { status: "fulfilled", value: 1 });
    assert.ok(refused?.status === "rejected" && refused.reason instanceof UsageError);
    assert.equal(refused.reason.field, "promptIds");
    for (const [i, end] of finished.entries()) {
      const expected = await resultOf(here.submit(request(ids[i + 1] ?? [])));
      assert.ok(end.status === "fulfilled");
      assert.equal(end.value.text, expected.text);
    }
  });

  await t.step("an abort ends a request with what it has", async () => {
    const abort = new AbortController();
    const long = request(ids[0] ?? [], { signal: abort.signal, maxTokens: 800, ignoreEos: true });
    const got: number[] = [];
    const result = await resultOf(engine.submit(long), (event) => {
      if (event.kind === "round") got.push(...event.ids);
      if (got.length > 5) abort.abort();
    });
    assert.equal(result.finishReason, "interrupt");
    assert.deepEqual(result.outputIds, got);
    assert.ok(got.length < 800);
    const none = request(ids[1] ?? [], { signal: AbortSignal.abort() });
    assert.equal((await resultOf(engine.submit(none))).finishReason, "interrupt");
  });

  await t.step("a listener that throws ends its own request, the others go on", async () => {
    const kinds: string[] = [];
    const options = { maxTokens: 30, ignoreEos: true };
    engine.submit(request(ids[0] ?? [], options)).listen((event) => {
      kinds.push(event.kind === "error" ? `${event.error}` : event.kind);
      if (event.kind === "round") throw new Error("not mine");
    });
    const last: string[] = [];
    engine.submit(request(ids[0] ?? [], options)).listen(({ kind }) => {
      last.push(kind);
      if (kind === "finish") throw new Error("after all");
    });
    const others = ids.slice(1, 3).map((each) => resultOf(engine.submit(request(each, options))));
    for (const { outputIds } of await Promise.all(others)) assert.equal(outputIds.length, 30);
    assert.deepEqual(kinds.slice(-2), ["round", "Error: not mine"]);
    assert.equal(last.at(-1), "finish");
  });

  await t.step("it is closed once the round that it works on has ended", async () => {
    const begun = Promise.withResolvers<void>();
    let finishReason: string | undefined;
    const long = request(ids[0] ?? [], { maxTokens: 800, ignoreEos: true });
    engine.submit(long).listen((event) => {
      if (event.kind === "round") begun.resolve();
      if (event.kind === "finish") ({ finishReason } = event.result);
    });
    await begun.promise;
    await engine[Symbol.asyncDispose]();
    assert.equal(finishReason, "interrupt");
  });
});

Deno.test("a model that cannot be opened is the user's to mend", async () => {
  await assert.rejects(open({ model: { model: "/no/such/model" } }), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, /^Cannot open "\/no\/such\/model/);
    return true;
  });
});

Deno.test("a worker that is no engine is an error", async () => {
  const broken = engineInWorker("data:text/javascript,throw new Error('no engine here')");
  await assert.rejects(broken({}), /the engine's thread ended: .*no engine here/);
});

Deno.test("a template that goes on and on takes nothing from the engine, nor from other prompts", () =>
  withModel(
    async (folder) => {
      await Deno.writeTextFile(`${folder}/generation_config.json`, '{"temperature": 0.5}');
      await Deno.writeTextFile(
        `${folder}/chat_template.jinja`,
        "{% if messages[0].content == '' %}{{ raise_exception('empty') }}{% endif %}" +
          "{% if messages[0].content == 'loop' %}{% for i in range(2000) %}" +
          "{% for j in range(400) %}{{ messages[0].content | trim | upper | lower }}{% endfor %}" +
          "{% endfor %}{% endif %}{{ messages[0].content }}" +
          "{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}",
      );
    },
    async (model) => {
      await using engine = await open({ model: { model, draft: "none" } });
      await assert.rejects(engine.encodePrompt(user("")), UsageError);
      const events = engine.submit(request([1, 2, 3], { maxTokens: 800, ignoreEos: true }));
      await events.next();
      const abort = new AbortController();
      setTimeout(() => abort.abort(), 50);
      const [, behind] = await Promise.all([
        assert.rejects(engine.encodePrompt(user("loop"), abort.signal), { name: "AbortError" }),
        engine.encodePrompt(user("Count from 3 to 5.")),
      ]);
      // The same thread, with the request that runs.
      assert.equal((await events.next()).done, false);
      await events.return();
      const ids = await engine.encodePrompt(user("Count from 3 to 5."));
      assert.deepEqual(behind, ids);
      const templateArguments = { enable_thinking: " to 5." };
      const given = { ...user("Count from 3"), templateArguments };
      assert.deepEqual(await engine.encodePrompt(given), ids);
      assert.deepEqual(engine.info.reasoning, { marks: undefined, openings: [], switchable: true });
      assert.deepEqual(engine.info.generation, { temperature: 0.5 });
      const result = await resultOf(
        engine.submit(request(ids, { maxTokens: 3, ignoreEos: true })),
      );
      assert.equal(result.outputIds.length, 3);
      await assert.rejects(engine.decode(Array(1_000_001).fill(5)), UsageError);
    },
  ));
