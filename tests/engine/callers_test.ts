// Many callers of one engine: each gets the text that it gets alone.
import assert from "node:assert/strict";
import { type GenerateRequest, resultOf } from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, openEngine } from "./open.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { generatedPrompt, PROMPT_KINDS } from "../prompts.ts";
import { assertNothingHeld } from "./held.ts";
import { exhaustive } from "../exhaustive.ts";

interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

function requestOf(engine: LocalEngine, messages: readonly Message[]): GenerateRequest {
  const promptIds = engine.text.encodePrompt({ messages });
  return { promptIds, sampling: GREEDY, maxTokens: 40, stop: [], ignoreEos: false };
}

/** Texts of the conversations, each alone and computed whole. */
async function alone(conversations: readonly (readonly Message[])[]): Promise<string[]> {
  using engine = await openEngine({
    hooks: { plan: statically(0) },
    limits: { prefixCache: false },
  });
  const texts: string[] = [];
  for (const messages of conversations) {
    texts.push((await resultOf(engine.submit(requestOf(engine, messages)))).text);
  }
  return texts;
}

exhaustive.test("26 texts, all asked for at once", async () => {
  const prompts = Array.from({ length: 2 * PROMPT_KINDS }, (_, n): Message[] => [
    { role: "user", content: generatedPrompt(n) },
  ]);
  using engine = await openEngine({ hooks: { plan: statically(3) }, limits: { maxBatch: 4 } });
  const results = await Promise.all(
    prompts.map((messages) => resultOf(engine.submit(requestOf(engine, messages)))),
  );
  assert.deepEqual(results.map(({ text }) => text), await alone(prompts));
  assertNothingHeld(engine);
});

exhaustive.test("texts that end one after the other, at their length or by a token, and again with their prompts cached", async () => {
  const LENGTHS = [1, 3, 17, 30, 44, 9, 60, 22, 5, 51, 12, 37];
  const requestsOf = (engine: LocalEngine) =>
    LENGTHS.map((maxTokens, n): GenerateRequest => ({
      ...requestOf(engine, [{ role: "user", content: generatedPrompt(n) }]),
      maxTokens,
      ignoreEos: n % 3 !== 0,
    }));
  using plain = await openEngine({
    hooks: { plan: statically(0) },
    limits: { prefixCache: false },
  });
  const expected: (readonly number[])[] = [];
  for (const request of requestsOf(plain)) {
    expected.push((await resultOf(plain.submit(request))).outputIds);
  }
  for (const [steps, maxBatch] of [[3, 12], [1, 5]] as const) {
    using engine = await openEngine({ hooks: { plan: statically(steps) }, limits: { maxBatch } });
    for (const turn of ["first", "again"]) {
      const asked = requestsOf(engine).map((request) => resultOf(engine.submit(request)));
      const found = (await Promise.all(asked)).map(({ outputIds }) => outputIds);
      assert.deepEqual(found, expected, `${steps} steps, ${maxBatch} at once, ${turn}`);
    }
    assertNothingHeld(engine);
  }
});

exhaustive.test("conversations go on side by side where pages are short", async () => {
  const turns = ["Spell the word amber.", "Count from 5 to 12.", "What is 3 + 4?"];
  using engine = await openEngine({
    hooks: { plan: statically(3) },
    limits: { maxBatch: 3, maxKvTokens: 240 },
  });
  const talk = async (first: string) => {
    let messages: Message[] = [];
    const asked: Message[][] = [];
    const texts: string[] = [];
    for (const content of [first, ...turns]) {
      messages = [...messages, { role: "user", content }];
      asked.push(messages);
      const { text } = await resultOf(engine.submit(requestOf(engine, messages)));
      texts.push(text);
      messages = [...messages, { role: "assistant", content: text }];
    }
    return { asked, texts };
  };
  const talks = await Promise.all([
    talk("Count from 1 to 15."),
    talk("Write the letters from b to n."),
    talk("Hello!"),
  ]);
  const expected = await alone(talks.flatMap(({ asked }) => asked));
  assert.deepEqual(talks.flatMap(({ texts }) => texts), expected);
  const { waits, preemptions } = engine.counts;
  assert.ok(waits + preemptions > 0, "pages were never short");
  assertNothingHeld(engine);
});

Deno.test("4 prompts behind one long system message share its pages", async () => {
  const system: Message = { role: "system", content: "Answer in few words, please. ".repeat(24) };
  const prompts = Array.from({ length: 4 }, (_, n): Message[] => [
    system,
    { role: "user", content: generatedPrompt(n) },
  ]);
  const texts: string[][] = [];
  const cached: number[][] = [];
  for (const prefixCache of [true, false]) {
    using engine = await openEngine({
      hooks: { plan: statically(3) },
      limits: { maxBatch: 3, maxKvTokens: 700, prefixCache },
    });
    const results = await Promise.all(
      prompts.map((messages) => resultOf(engine.submit(requestOf(engine, messages)))),
    );
    texts.push(results.map(({ text }) => text));
    cached.push(results.map(({ cachedTokens }) => cachedTokens));
    assertNothingHeld(engine);
  }
  assert.deepEqual(texts[0], texts[1]);
  const [shared = [], none = []] = cached;
  assert.deepEqual(none, Array(4).fill(0));
  assert.equal(shared[0], 0);
  assert.ok(shared.slice(1).every((tokens) => tokens > 150 && tokens % PAGE === 0), `${shared}`);
});
