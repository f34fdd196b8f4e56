import assert from "node:assert/strict";
import { readBuffer } from "../../src/gpu/readback.ts";
import type { Runner, TextEnds } from "../../src/engine/device/runner.ts";
import {
  type OpenSequence,
  openSequence,
  prefillPrompt,
} from "../../src/engine/device/single_sequence.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { openEngine } from "./open.ts";
import type { RoundSample } from "../../src/engine/schedule/rounds/round_sample.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { EOS, goldenCases, openFledgling } from "./fledgling.ts";

const [CASE] = goldenCases().toSorted((a, b) => b.greedy_ids.length - a.greedy_ids.length);
const PROMPT = CASE?.prompt_ids ?? [];
const GREEDY_IDS = CASE?.greedy_ids ?? [];

const runner = await openFledgling("eagle3", 3);
Deno.test.afterAll(() => runner.gpu[Symbol.dispose]());

/** A sequence that has stored the prompt and has pages for `more` tokens beyond it. */
async function prompted(more: number, ends: TextEnds = {}): Promise<OpenSequence> {
  const sequence = openSequence(runner);
  assert.ok(runner.reserve(sequence, PROMPT.length + more));
  runner.setSampling(sequence, GREEDY, ends);
  await prefillPrompt(runner, sequence, PROMPT);
  return sequence;
}

/** The keys of layer 0 in pages that are not among `but`, [pages, kvHeads, PAGE, headDim]. */
async function otherKeys({ gpu, models: { target }, capacity }: Runner, but: readonly number[]) {
  const words = new Uint32Array(await readBuffer(gpu, target.kv[0]!.keys));
  const size = words.length / capacity.pages;
  return Array.from({ length: capacity.pages }, (_, page) => page)
    .filter((page) => !but.includes(page))
    .flatMap((page) => [...words.subarray(page * size, (page + 1) * size)]);
}

const idsOf = (
  rounds: readonly { sequences: readonly { ids: readonly number[] }[] }[],
  lane: number,
) => rounds.map(({ sequences }) => sequences[lane]?.ids ?? []);

for (const numSteps of [0, 3]) {
  Deno.test(`num_steps ${numSteps}: a lane stops on its own pages, the others go on`, async () => {
    using short = await prompted(1);
    using long = await prompted(100);
    const own = [...short.pages, ...long.pages];
    const before = await otherKeys(runner, own);
    const rounds = await runner.rounds([short, long], { shape: chain(numSteps), count: 8 });
    assert.deepEqual(await otherKeys(runner, own), before);
    const [cut, whole] = [idsOf(rounds, 0), idsOf(rounds, 1)];
    assert.ok(whole.every((ids) => ids.length > 0));
    assert.deepEqual(whole.flat(), GREEDY_IDS.slice(1, 1 + whole.flat().length));
    // Both decode the same text, so the short lane has the long one's rounds until its cells end.
    const room = short.pages.length * PAGE;
    const fitting: (readonly number[])[] = [];
    for (let length = PROMPT.length; length + numSteps + 1 <= room && fitting.length < 8;) {
      const ids = whole[fitting.length] ?? [];
      fitting.push(ids);
      length += ids.length;
    }
    assert.deepEqual(cut, [...fitting, ...Array(8 - fitting.length).fill([])]);
    assert.equal(short.stored, PROMPT.length + fitting.flat().length);
    // With more pages it goes on where it was.
    assert.ok(runner.reserve(short, PROMPT.length + 100));
    const more = await runner.rounds([short], { shape: chain(numSteps), count: 2 });
    const found = [...cut, ...idsOf(more, 0)].flat();
    assert.deepEqual(found, GREEDY_IDS.slice(1, 1 + found.length));
  });
}

Deno.test("a stop id ends a lane in the middle of a group, and its slot can be used again", async () => {
  const stop = GREEDY_IDS[9] ?? NaN;
  const first = GREEDY_IDS.indexOf(stop);
  using sequence = await prompted(100, { stopIds: [EOS, stop] });
  const rounds = await runner.rounds([sequence], { shape: chain(2), count: 8 });
  const ids = idsOf(rounds, 0).flat();
  assert.deepEqual(ids, GREEDY_IDS.slice(1, 1 + ids.length));
  const last = rounds.findLast(({ sequences }) => sequences[0]?.ids.length);
  assert.ok(last?.sequences[0]?.ids.includes(stop) && ids.indexOf(stop) === first - 1);
  assert.equal(rounds.at(-1)?.sequences[0]?.ids.length, 0);
  assert.deepEqual(sequence.ids.slice(0, sequence.stored), [
    ...PROMPT,
    ...GREEDY_IDS.slice(0, sequence.stored - PROMPT.length),
  ]);
  // The same prompt again, without that stop.
  runner.setSampling(sequence, GREEDY, { stopIds: [EOS] });
  await prefillPrompt(runner, sequence, PROMPT, PROMPT.length - 1);
  const again = await runner.rounds([sequence], { shape: chain(2), count: 8 });
  const whole = idsOf(again, 0).flat();
  assert.ok(whole.length > ids.length);
  assert.deepEqual(whole, GREEDY_IDS.slice(1, 1 + whole.length));
});

for (const numSteps of [0, 2]) {
  Deno.test(`num_steps ${numSteps}: a lane stops where its text has all its tokens, the others go on`, async () => {
    const maxTokens = PROMPT.length + 4;
    using ending = await prompted(100, { maxTokens });
    using other = await prompted(100);
    const rounds = await runner.rounds([ending, other], { shape: chain(numSteps), count: 8 });
    const [own, others] = [idsOf(rounds, 0), idsOf(rounds, 1)];
    assert.ok(others.every((ids) => ids.length > 0));
    // Both decode the same text. The last round may give more tokens than there is room for.
    const count = others.findIndex((_, i) => 1 + others.slice(0, i + 1).flat().length >= 4) + 1;
    assert.deepEqual(own, [...others.slice(0, count), ...Array(8 - count).fill([])]);
  });
}

Deno.test("each sequence has as many drafts verified as it is told, for as long as it is", async () => {
  using first = await prompted(100);
  using second = await prompted(100);
  using third = await prompted(100);
  const sequences = [first, second, third];
  const seen = new Set<string>();
  for (const depths of [[3, 0, 1], [0, 2, 3], undefined, [1, 1, 0], undefined]) {
    const rounds = await runner.rounds(sequences, {
      shape: chain(3),
      count: 2,
      ...depths && { depths },
    });
    for (const { sequences } of rounds) {
      for (const [i, { accepted, drafts, ids }] of sequences.entries()) {
        const most = depths?.[i] ?? 3;
        assert.equal(drafts.length, most);
        assert.ok(accepted <= most);
        assert.deepEqual(ids.slice(0, -1), drafts.slice(0, accepted));
        seen.add(`${most} ${accepted}`);
      }
    }
  }
  for (const { ids } of sequences) {
    const found = ids.slice(PROMPT.length);
    assert.deepEqual(found, GREEDY_IDS.slice(0, found.length));
  }
  // All that was to be verified was right at times.
  assert.ok(["0 0", "1 1", "2 2", "3 3"].every((each) => seen.has(each)), [...seen].join());
});

async function run(
  roundsPerSync: number,
  requests: readonly Partial<GenerateRequest>[],
): Promise<{ results: GenerateResult[]; wasted: number; rounds: RoundSample[] }> {
  const rounds: RoundSample[] = [];
  using engine = await openEngine({
    hooks: { plan: statically(2), onRound: (round) => rounds.push(round) },
    limits: { maxBatch: requests.length, roundsPerSync },
  });
  const results = await Promise.all(requests.map((request) =>
    resultOf(engine.submit({
      promptIds: PROMPT,
      sampling: GREEDY,
      maxTokens: 40,
      stop: [],
      ignoreEos: false,
      numSteps: 2,
      ...request,
    }))
  ));
  return { results, wasted: engine.counts.wasted, rounds };
}

Deno.test("requests that end within a group get what they get alone, and count only their rounds", async () => {
  const requests = [{ maxTokens: 5 }, { stop: [CASE?.text.slice(8, 12) ?? ""] }, { maxTokens: 33 }];
  const one = await run(1, requests);
  const eight = await run(8, requests);
  const told = ({ results }: typeof one) =>
    results.map(({ text, outputIds, finishReason, speculative, drafts }) => (
      { text, outputIds, finishReason, speculative, drafts }
    ));
  assert.deepEqual(told(eight), told(one));
  assert.deepEqual(eight.results.map(({ finishReason }) => finishReason), [
    "length",
    "stop",
    "length",
  ]);
  const accepted = ({ rounds }: typeof one) => rounds.flatMap((round) => round.accepted).toSorted();
  assert.deepEqual(accepted(eight), accepted(one));
  assert.equal(one.wasted, 0);
  assert.ok(eight.wasted < 8);
  assert.ok(eight.rounds.some(({ together }) => together > 4));
});

Deno.test("a stop text that the device knows nothing of wastes the rest of its group alone", async () => {
  const stop = [CASE?.text.slice(8, 12) ?? ""];
  const { results: [result], wasted, rounds } = await run(8, [{ stop }]);
  assert.equal(result?.finishReason, "stop");
  assert.equal((rounds.length + wasted) % 8, 0);
  assert.ok(wasted > 0 && wasted < 8);
  const { results: [plain] } = await run(1, [{ stop }]);
  assert.deepEqual(result?.outputIds, plain?.outputIds);
});
