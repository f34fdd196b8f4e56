import assert from "node:assert/strict";
import { NOT_A_TOKEN } from "../../kernels/lib/rows.ts";
import { UsageError } from "../../src/errors.ts";
import type { EngineEvent, GenerateRequest } from "../../src/engine/schedule/events.ts";
import {
  openOutput,
  type OutputConfig,
  type RoundOutput,
} from "../../src/engine/schedule/output.ts";
import type { Constraint } from "../../src/grammar/constraint.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { REASONING_MARKS } from "../../src/text/reasoning.ts";
import type { Tokenizer } from "../../src/text/tokenizer.ts";
import { chatLogprobs } from "../../src/serve/openai/logprobs.ts";
import { chain } from "../../src/speculate/round_shape.ts";

/** Ends a sequence; no byte of UTF-8. */
const EOS = 0xff;

/** A token a byte of UTF-8; the bytes of half a character are one U+FFFD. */
const BYTES: Tokenizer = {
  vocabSize: 256,
  bosToken: undefined,
  eosToken: undefined,
  encode: (text) => [...new TextEncoder().encode(text)],
  decode: (ids) => new TextDecoder().decode(Uint8Array.from(ids)),
  idOf: () => undefined,
  isSkipped: (id) => id === EOS,
};

const OUTPUTS: OutputConfig = {
  tokenizer: BYTES,
  name: "bytes",
  vocabSize: 256,
  eosTokenIds: [EOS],
  algorithm: "EAGLE3",
  contextLength: 100,
  tier: chain(3),
};

const REQUEST: GenerateRequest = {
  promptIds: [1, 2, 3],
  sampling: GREEDY,
  maxTokens: 20,
  stop: [],
  ignoreEos: false,
  numSteps: 3,
};

const ENDED = {
  started: 1000,
  admitted: 1001,
  prefilled: 1011,
  compileMs: 0,
  ended: 1511,
  cached: 2,
  ids: [],
};

/** Ids of a text, U+00FF standing for EOS. */
function ids(text: string): number[] {
  return text.split("\xff").flatMap((part, i) => [...i > 0 ? [EOS] : [], ...BYTES.encode(part)]);
}

/** The first token as prefill leaves it, then rounds. */
function taken(round: readonly number[], i: number): RoundOutput {
  if (i === 0) return { ids: round, accepted: 0, drafts: [], tier: undefined };
  return { ids: round, accepted: round.length - 1, drafts: [1, 2, 3], tier: chain(3) };
}

/** Takes rounds until the output has finished, as the scheduler does; then its end. */
function run(request: Partial<GenerateRequest>, rounds: readonly (readonly number[])[]) {
  const output = openOutput(OUTPUTS, { ...REQUEST, ...request });
  const events: EngineEvent[] = [];
  for (const [i, round] of rounds.entries()) {
    assert.equal(output.finished, undefined, `finished before round ${i}`);
    events.push(...output.take(taken(round, i)));
  }
  const ids = events.flatMap((event) => event.kind === "round" ? event.ids : []);
  events.push(...output.end({ ...ENDED, ids }));
  const texts = events.flatMap((event) => event.kind === "text" ? [event.text] : []);
  const kept = events.flatMap((event) => event.kind === "round" ? [event.ids] : []);
  const last = events.at(-1);
  assert.ok(last?.kind === "finish");
  assert.equal(texts.join(""), last.result.text);
  assert.deepEqual(kept.flat(), last.result.outputIds);
  return { texts, kept, result: last.result, left: output.left };
}

type Row = readonly [
  what: string,
  request: Partial<GenerateRequest>,
  rounds: readonly (readonly number[])[],
  texts: readonly string[],
  reason: "stop" | "length" | "interrupt",
  outputIds: number,
];

const TABLE: readonly Row[] = [
  ["no token", {}, [], [], "interrupt", 0],
  ["goes on", {}, [ids("a"), ids("bc")], ["a", "bc"], "interrupt", 3],
  ["end of sequence, an id and not text", {}, [ids("a"), ids("b\xffcd")], ["a", "b"], "stop", 3],
  ["end of sequence first", {}, [ids("\xff")], [], "stop", 1],
  ["ignoreEos", { ignoreEos: true }, [ids("a"), ids("b\xffc")], ["a", "bc"], "interrupt", 4],
  [
    "most tokens, within a round",
    { maxTokens: 3 },
    [ids("a"), ids("bcd")],
    ["a", "bc"],
    "length",
    3,
  ],
  ["most tokens are one", { maxTokens: 1 }, [ids("a")], ["a"], "length", 1],
  [
    "end of sequence as the last token allowed",
    { maxTokens: 2 },
    [ids("a"), ids("\xffb")],
    ["a"],
    "stop",
    2,
  ],
  [
    "the context ends",
    { promptIds: Array(97).fill(1) },
    [ids("a"), ids("bcd")],
    ["a", "bc"],
    "length",
    3,
  ],
  ["stop text within a round", { stop: ["c"] }, [ids("a"), ids("bcd")], ["a", "b"], "stop", 3],
  ["stop text over rounds", { stop: ["bcd"] }, [ids("a"), ids("bc"), ids("de")], ["a"], "stop", 4],
  [
    "stop text as the last token allowed",
    { stop: ["bc"], maxTokens: 3 },
    [ids("a"), ids("bcd")],
    ["a"],
    "stop",
    3,
  ],
  [
    "begin of a stop text comes with what follows",
    { stop: ["bcd"] },
    [ids("a"), ids("b"), ids("x")],
    ["a", "bx"],
    "interrupt",
    3,
  ],
  [
    "begin of a stop text comes at the end",
    { stop: ["cde"], maxTokens: 4 },
    [ids("a"), ids("bcd")],
    ["a", "b", "cd"],
    "length",
    4,
  ],
  [
    "end of sequence after the begin of a stop text",
    { stop: ["cd"] },
    [ids("a"), ids("bc\xff")],
    ["a", "b", "c"],
    "stop",
    4,
  ],
  ["character over rounds", {}, [[0xe2], [0x82], [0xac, 0x61]], ["€a"], "interrupt", 4],
  [
    "half a character at the end",
    { maxTokens: 2 },
    [ids("a"), [0xe2]],
    ["a", "\ufffd"],
    "length",
    2,
  ],
  [
    "half a character completes a stop text at the end",
    { stop: ["b\ufffd"], maxTokens: 3 },
    [ids("a"), [0x62, 0xe2]],
    ["a"],
    "stop",
    3,
  ],
  [
    "the same after an interrupt",
    { stop: ["\ufffd"] },
    [ids("ab"), [0xe2, 0x82]],
    ["ab"],
    "stop",
    4,
  ],
  [
    "half a character after the begin of another stop text",
    { stop: ["bc"], maxTokens: 3 },
    [ids("a"), [0x62, 0xe2]],
    ["a", "b\ufffd"],
    "length",
    3,
  ],
];

for (const [what, request, rounds, texts, reason, outputIds] of TABLE) {
  Deno.test(`output: ${what}`, () => {
    const found = run(request, rounds);
    assert.deepEqual(
      [found.texts, found.result.finishReason, found.result.outputIds.length],
      [texts, reason, outputIds],
    );
  });
}

Deno.test("output: tokens past the end are dropped, and their drafts are not counted", () => {
  const { kept, left, result } = run({ maxTokens: 4 }, [ids("a"), ids("bc"), ids("defg")]);
  assert.deepEqual(kept, [ids("a"), ids("bc"), ids("d")]);
  assert.equal(left, 0);
  assert.deepEqual(result.drafts, [[1, 2, 3], [1]]);
  const { rounds, draft_tokens, accepted_per_round, num_steps } = result.speculative;
  // The last round kept one token, an accepted draft: the three others came after the end.
  assert.deepEqual([rounds, draft_tokens, accepted_per_round, num_steps], [2, 4, [1, 1], 3]);
});

Deno.test("output: the setting told is the deepest round's, or what was asked without any", () => {
  const output = openOutput(OUTPUTS, REQUEST);
  for (const numSteps of [0, 5, 1]) {
    const drafts = Array(numSteps).fill(7);
    output.take({ ids: ids("a"), accepted: 0, drafts, tier: chain(numSteps) });
  }
  assert.equal(resultOf(output.end(ENDED)).speculative.num_draft_tokens, 6);
  const { speculative } = resultOf(openOutput(OUTPUTS, REQUEST).end(ENDED));
  assert.deepEqual([speculative.algorithm, speculative.num_draft_tokens], ["EAGLE3", 4]);
  const plain = openOutput({ ...OUTPUTS, algorithm: "NONE" }, REQUEST).end(ENDED);
  assert.equal(resultOf(plain).speculative.num_draft_tokens, 0);
});

Deno.test("output: times and the cache come from the clock", () => {
  const { timing, cachedTokens, promptIds } = run({}, [ids("a"), ids("bcdef")]).result;
  assert.deepEqual(timing, {
    queuedMs: 1,
    prefillMs: 10,
    decodeMs: 500,
    compileMs: 0,
    timeToFirstTokenMs: 11,
    tokensPerSecond: 10,
  });
  assert.deepEqual([cachedTokens, promptIds], [2, REQUEST.promptIds]);
});

Deno.test("output: broken logits are told with their position, after the round's tokens before them", () => {
  const output = openOutput(OUTPUTS, REQUEST);
  output.take(taken(ids("a"), 0));
  assert.equal(output.failure, undefined);
  const [round, text] = output.take(taken([0x62, NOT_A_TOKEN, 0x63], 1));
  assert.deepEqual([round?.kind === "round" && round.ids, text], [[0x62], {
    kind: "text",
    text: "b",
  }]);
  const message = 'Cannot generate with "bytes": the logits at position 5 are not numbers';
  assert.deepEqual(output.failure, { thrown: new UsageError(message) });
  assert.deepEqual(openOutput(OUTPUTS, REQUEST).take(taken([NOT_A_TOKEN], 0)), []);
});

Deno.test("output: of a round in which the grammar fails, what comes before is output", () => {
  const thrown = new UsageError("no");
  const constraint = {
    complete: false,
    take(token: number) {
      if (token === 0x63) throw thrown;
    },
  } as Partial<Constraint> as Constraint;
  const output = openOutput(OUTPUTS, REQUEST);
  const events = output.take(taken(ids("abcd"), 3), constraint);
  assert.deepEqual(events.at(-1), { kind: "text", text: "ab" });
  assert.deepEqual([output.tokens, output.finished, output.failure], [2, undefined, { thrown }]);
});

function resultOf(events: readonly EngineEvent[]) {
  const last = events.at(-1);
  assert.ok(last?.kind === "finish");
  return last.result;
}

Deno.test("a grammar goes on with what is output, and not with what an accepted run has behind it", () => {
  const seen: string[] = [];
  const constraint = {
    take: (token: number) => void seen.push(String.fromCharCode(token)),
    get complete() {
      return seen.join("") === "ok!";
    },
  } as Partial<Constraint> as Constraint;
  const take = (text: string, request: Partial<GenerateRequest> = {}) => {
    seen.length = 0;
    const output = openOutput(OUTPUTS, { ...REQUEST, ...request });
    output.take(taken(ids(text), 1), constraint);
    return [seen.join(""), output.finished];
  };
  assert.deepEqual(take("a\xffbc"), ["a\xff", "stop"]);
  assert.deepEqual(take("ok!more"), ["ok!", "stop"]);
  assert.deepEqual(take("ok!", { ignoreEos: true }), ["ok!", "stop"]);
  assert.deepEqual(take("abENDcd", { stop: ["END"] }), ["abEND", "stop"]);
  assert.deepEqual(take("abcd", { maxTokens: 2 }), ["ab", "length"]);
});

Deno.test("reasoning tokens do not depend on how rounds cut the output", () => {
  const [marks] = REASONING_MARKS;
  const outputs = { ...OUTPUTS, reasoning: { marks, openings: [] } };
  const all = ids("<think>ab</think>\n\nHi");
  for (const size of [1, 2, 3, 5, 7, all.length]) {
    const output = openOutput(outputs, { ...REQUEST, maxTokens: 90, stop: ["Hi", "</thunk>"] });
    for (let at = 0; at < all.length; at += size) {
      output.take(taken(all.slice(at, at + size), at));
    }
    const events = output.end(ENDED);
    const finish = events.at(-1) ?? assert.fail();
    assert.ok(finish.kind === "finish" && finish.result.reasoningTokens === 17, `${size}`);
  }
});

Deno.test("drafts that a prediction gave are counted apart, as far as they became output", () => {
  const output = openOutput(OUTPUTS, { ...REQUEST, maxTokens: 6, prediction: [1] });
  output.take(taken(ids("a"), 0));
  output.take({ ...taken(ids("bc"), 1), predicted: true });
  output.take(taken(ids("d"), 1));
  // Of three that were accepted the last one is behind the end.
  output.take({ ...taken(ids("efgh"), 1), predicted: true });
  const finish = output.end(ENDED).at(-1) ?? assert.fail();
  assert.ok(finish.kind === "finish");
  assert.deepEqual(finish.result.prediction, { drafted: 5, accepted: 3 });
  assert.equal(finish.result.speculative.draft_tokens, 8);
  const without = openOutput(OUTPUTS, REQUEST).end(ENDED).at(-1) ?? assert.fail();
  assert.ok(without.kind === "finish" && without.result.prediction === undefined);
});

Deno.test("each token of a character has its own bytes in the logprobs", () => {
  let built = 0;
  const tokens = () => {
    built++;
    return { bytes: Array.from({ length: 256 }, (_, id) => Uint8Array.of(id)), stripsSpace: false };
  };
  const logprobs = ids("aé").map((id) => ({ id, logprob: -1, top: [{ id: 0xa9, logprob: -2 }] }));
  const round: RoundOutput = { ids: ids("aé"), accepted: 2, drafts: [], tier: chain(3), logprobs };
  const told = (request: Partial<GenerateRequest>, outputs: OutputConfig) => {
    const output = openOutput(outputs, { ...REQUEST, ...request });
    const [event] = output.take(round);
    assert.ok(event?.kind === "round");
    return event.logprobs ?? [];
  };
  assert.deepEqual(told({}, { ...OUTPUTS, tokens }), []);
  assert.equal(built, 0, "without logprobs nothing is built");
  const { content }: { content: { bytes: unknown; top_logprobs: { bytes: unknown }[] }[] } = JSON
    .parse(JSON.stringify(chatLogprobs(told({ logprobs: 1 }, { ...OUTPUTS, tokens }))));
  assert.deepEqual(content.map(({ bytes }) => bytes), [[0x61], [0xc3], [0xa9]]);
  assert.deepEqual(content[0]?.top_logprobs[0]?.bytes, [0xa9]);
  const unknown = () => {
    throw new UsageError("the decoder is not known");
  };
  assert.deepEqual(
    told({ logprobs: 0 }, { ...OUTPUTS, tokens: unknown }).map(({ bytes }) => bytes),
    [undefined, undefined, undefined],
  );
});

Deno.test("output: drafts after the end of the text are not counted as rejected", () => {
  const { speculative } = run({}, [ids("a"), ids("b\xffcd")]).result;
  const { draft_tokens, accepted_tokens, draft_acceptance_rate, acceptance_per_position } =
    speculative;
  assert.deepEqual([draft_tokens, accepted_tokens, draft_acceptance_rate], [2, 2, 1]);
  assert.deepEqual(acceptance_per_position, [1, 1, 0]);
  // A draft that the last token replaces was rejected.
  assert.equal(run({}, [ids("a"), ids("b\xff")]).result.speculative.draft_tokens, 3);
});
