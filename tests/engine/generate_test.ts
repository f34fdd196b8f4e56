import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import {
  type EngineEvent,
  type GenerateRequest,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, openEngine } from "./open.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";
import { EOS } from "./fledgling.ts";

const REQUEST: Omit<GenerateRequest, "promptIds"> = {
  sampling: GREEDY,
  maxTokens: 100,
  stop: [],
  ignoreEos: false,
  numSteps: 3,
};

async function collect(events: AsyncIterable<EngineEvent>) {
  const pieces: string[] = [];
  const prefills: number[] = [];
  const result = await resultOf(events, (event) => {
    if (event.kind === "text") pieces.push(event.text);
    if (event.kind === "prefill") prefills.push(event.done);
  });
  assert.equal(pieces.join(""), result.text);
  return { result, prefills, pieces };
}

function user(engine: LocalEngine, content: string): number[] {
  return engine.text.encodePrompt({ messages: [{ role: "user", content }] });
}

Deno.test("a request on the embedded model", async (t) => {
  // A shorter context is as full at its end as the model's own.
  using engine = await openEngine({
    hooks: { plan: statically(3, [0, 1, 2, 3, 4, 5, 6, 7]) },
    limits: EXHAUSTIVE ? {} : { contextLength: 160 },
  });
  const { contextLength } = engine.info;
  const promptIds = user(engine, "Count from 3 to 20.");
  const counted = "3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20.";

  async function run(request: Partial<GenerateRequest>) {
    return (await collect(engine.submit({ promptIds, ...REQUEST, ...request }))).result;
  }

  await t.step("ends at the end-of-sequence token, which is an id and not text", async () => {
    const result = await run({});
    assert.equal(result.text, counted);
    assert.equal(result.finishReason, "stop");
    assert.equal(result.outputIds.at(-1), 1);
    const { rounds, mean_accept_length } = result.speculative;
    assert.equal(Math.round(rounds * mean_accept_length), result.outputIds.length - 1);
  });

  await t.step("stops at a stop text inside an accepted run, and leaves it out", async () => {
    const result = await run({ stop: [" 11, 1", "nowhere"] });
    assert.equal(result.text, "3, 4, 5, 6, 7, 8, 9, 10,");
    assert.equal(result.finishReason, "stop");
  });

  await t.step("max tokens cut inside an accepted run", async () => {
    for (const maxTokens of [1, 2, 3, 6, 7]) {
      const result = await run({ maxTokens });
      assert.equal(result.outputIds.length, maxTokens);
      assert.equal(result.finishReason, "length");
      assert.ok(counted.startsWith(result.text));
    }
  });

  await t.step("ignoreEos goes on", async () => {
    const result = await run({ ignoreEos: true, maxTokens: 80 });
    assert.equal(result.outputIds.length, 80);
    assert.ok(result.outputIds.indexOf(1) < 79);
  });

  await t.step("an abort keeps what was generated", async () => {
    const abort = new AbortController();
    const ids: number[] = [];
    const request = { promptIds, ...REQUEST, signal: abort.signal };
    for await (const event of engine.submit(request)) {
      if (event.kind === "round") ids.push(...event.ids);
      if (ids.length > 8) abort.abort();
      if (event.kind !== "finish") continue;
      assert.equal(event.result.finishReason, "interrupt");
      assert.deepEqual(event.result.outputIds, ids);
    }
    assert.ok(ids.length > 8);
  });

  await t.step("an abort before the first token generates nothing", async () => {
    const result = await run({ signal: AbortSignal.abort() });
    assert.equal(result.finishReason, "interrupt");
    assert.equal(result.outputIds.length, 0);
  });

  await t.step("rounds create no pipeline, bind group or buffer", async () => {
    await run({});
    const before = { ...engine.runner.created };
    await run({});
    assert.deepEqual({ ...engine.runner.created }, before);
  });

  await t.step("a context that fills ends the text", async () => {
    const long = user(engine, "Count from 1 to 9. ".repeat(150)).slice(0, contextLength - 23);
    const result = await run({ promptIds: long, ignoreEos: true, maxTokens: 999 });
    assert.equal(result.finishReason, "length");
    assert.equal(result.outputIds.length, contextLength - long.length);
  });

  await t.step("a prompt as long as the context is refused", async () => {
    const promptIds = Array.from({ length: contextLength }, () => 300);
    await assert.rejects(
      run({ promptIds }),
      {
        name: "UsageError",
        message: `Cannot generate: the prompt has ${contextLength} tokens, ` +
          `the context of "fledgling/target" holds ${contextLength}`,
      },
    );
  });

  await t.step(
    "a token id outside of the vocabulary is refused, and the engine goes on",
    async () => {
      for (const id of [2048, -1, 1.5, NaN, 2 ** 32]) {
        await assert.rejects(
          run({ promptIds: [...promptIds, id] }),
          {
            name: "UsageError",
            message:
              `Cannot generate: the prompt has token id ${id} at position ${promptIds.length}, ` +
              '"fledgling/target" has ids 0 to 2047',
          },
        );
      }
      assert.equal((await run({})).text, counted);
    },
  );

  await t.step("an empty prompt is refused", async () => {
    await assert.rejects(
      run({ promptIds: [] }),
      { name: "UsageError", message: "Cannot generate: the prompt is empty" },
    );
  });
});

Deno.test("a conversation computes only what is new, and answers as from the start", async (t) => {
  const speculate = statically(3, [0, 1, 2, 3, 4, 5, 6, 7]);
  using engine = await openEngine({ hooks: { plan: speculate }, limits: { roundsPerSync: 3 } });
  using uncached = await openEngine({
    hooks: { plan: speculate },
    limits: { roundsPerSync: 3, prefixCache: false },
  });
  const turns = ["Spell the word amber.", "Count from 5 to 12.", "Thank you!"];
  // The draft catches up in both of these; the lossless array continues cached prompts that drafted throughout.
  const others = EXHAUSTIVE ? [[3, 3, 3], [0, 0, 0]] : [];
  for (const drafting of [[0, 3, 7], [3, 0, 2], ...others]) {
    await t.step(`num_steps ${drafting}`, async () => {
      const messages: { role: "user" | "assistant"; content: string }[] = [];
      engine.cache.clear();
      const answers: { text: string; accepted: number; cached: number }[] = [];
      for (const [turn, content] of turns.entries()) {
        messages.push({ role: "user", content });
        const promptIds = engine.text.encodePrompt({ messages });
        const request = { promptIds, ...REQUEST, numSteps: drafting[turn] ?? 0 };
        const { result } = await collect(engine.submit(request));
        messages.push({ role: "assistant", content: result.text });
        const { accepted_tokens } = result.speculative;
        answers.push({ text: result.text, accepted: accepted_tokens, cached: result.cachedTokens });
      }
      for (const [turn] of turns.entries()) {
        const promptIds = engine.text.encodePrompt({ messages: messages.slice(0, 2 * turn + 1) });
        const request = { promptIds, ...REQUEST, numSteps: drafting[turn] ?? 0 };
        const { result } = await collect(uncached.submit(request));
        assert.equal(answers[turn]?.text, result.text);
        // The draft caught up with tokens that were decoded without it.
        assert.equal(answers[turn]?.accepted, result.speculative.accepted_tokens);
        assert.equal(result.cachedTokens, 0);
        if (turn > 0) assert.equal(answers[turn]?.cached, shared(engine, messages, turn));
      }
    });
  }
});

/** Tokens in the whole pages that turn `turn` has in common with what the turn before stored. */
function shared(
  engine: LocalEngine,
  messages: readonly { readonly role: "user" | "assistant"; readonly content: string }[],
  turn: number,
): number {
  const now = engine.text.encodePrompt({ messages: messages.slice(0, 2 * turn + 1) });
  const before = [
    ...engine.text.encodePrompt({ messages: messages.slice(0, 2 * turn - 1) }),
    ...engine.text.tokenizer.encode(messages[2 * turn - 1]?.content ?? "", {
      addSpecialTokens: false,
    }),
    EOS,
  ];
  const differs = now.findIndex((id, i) => id !== before[i]);
  return Math.floor((differs - 1) / PAGE) * PAGE;
}

Deno.test("the tokenizer's end token ends an answer too, if the config names another one", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const model = new URL("../../models/fledgling/target", import.meta.url).pathname;
    for await (const { name } of Deno.readDir(model)) {
      if (name.endsWith("config.json")) {
        const config = JSON.parse(await Deno.readTextFile(`${model}/${name}`));
        const changed = "eos_token_id" in config ? { ...config, eos_token_id: EOS + 1 } : config;
        await Deno.writeTextFile(`${folder}/${name}`, JSON.stringify(changed));
      } else await Deno.symlink(`${model}/${name}`, `${folder}/${name}`);
    }
    using engine = await openEngine({ model: { model: folder, draft: "none" } });
    const promptIds = user(engine, "Count from 3 to 6.");
    const { result } = await collect(engine.submit({ promptIds, ...REQUEST, numSteps: 0 }));
    assert.deepEqual([result.text, result.finishReason], ["3, 4, 5, 6.", "stop"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("logits that are no numbers are an error, not garbage", async () => {
  using engine = await openEngine({ hooks: { plan: statically(3) } });
  const { norm } = engine.runner.models.target.weights;
  const broken = new Float32Array(256).fill(NaN);
  engine.runner.gpu.device.queue.writeBuffer(norm.buffer, norm.offset ?? 0, broken);
  const promptIds = user(engine, "Hello!");
  await assert.rejects(collect(engine.submit({ promptIds, ...REQUEST })), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, /the logits at position \d+ are not numbers/);
    return true;
  });
});
