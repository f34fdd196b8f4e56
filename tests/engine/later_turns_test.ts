/**
 * Requests of models whose layers have states, or rings of pages for windows: later turns of a conversation, and
 * requests that were preempted.
 */
import assert from "node:assert/strict";
import { PAGE } from "../../src/model/device_layout.ts";
import { resultOf } from "../../src/engine/schedule/events.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { drawn, exhaustive } from "../exhaustive.ts";
import { machineOf } from "../lossless/run.ts";
import { assertPreempted, generate, idsOf } from "./greedy.ts";
import { assertNothingHeld } from "./held.ts";
import { type LocalEngine, type LocalOptions, type Machine, openEngine } from "./open.ts";
import { draftConfig, folderOf } from "./speculated.ts";

/** The shapes of a golden with random weights, which need no tokenizer. */
function open(
  name: string,
  { algorithm = "NONE", ...limits }: LocalOptions["limits"] & {
    readonly algorithm?: "NONE" | "NGRAM";
  } = {},
  machine: Machine = machineOf({ kernels: "software", groups: "one" }),
): Promise<LocalEngine> {
  const random = { target: `${folderOf(name)}/config.json` };
  return openEngine({ model: { random, algorithm }, limits }, machine);
}

/** A forward holds any prompt of these tests, so windows keep the whole context, which takes fewer pages than rings. */
function openPlain(name: string, contextLength: number): Promise<LocalEngine> {
  return open(name, { prefixCache: false, contextLength, maxBatchedRows: 1024 });
}

const WINDOWS: readonly string[] = ["gpt_oss", "gemma4_e"];

const TURNS = [
  ["qwen3_5", "NGRAM"],
  ["lfm2", "NGRAM"],
  ["gpt_oss", "NGRAM"],
  ["qwen3_5", "NONE"],
  ["gemma4_e", "NONE"],
] as const;

for (const [name, algorithm] of TURNS) {
  const { test } = algorithm === "NGRAM" ? Deno : exhaustive;
  test(`${name}, ${algorithm}: later turns store only what is new, the text is that without a cache`, async () => {
    using engine = await open(name, {
      algorithm,
      maxBatch: 2,
      contextLength: 512,
      maxBatchedRows: 64,
    });
    using plain = await openPlain(name, 512);
    assertRings(name, engine, plain);
    let ids: readonly number[] = idsOf(70, 1);
    for (let turn = 0; turn < 4; turn++) {
      const found = await generate(engine, ids, 21 + turn);
      const expected = await generate(plain, ids, 21 + turn);
      assert.deepEqual(found.outputIds, expected.outputIds, `turn ${turn}`);
      const known = turn === 0 ? 0 : ids.length - 9;
      // A few rows, at most a page and the verify rows of a round, are behind what is surely the text's.
      assert.ok(found.cachedTokens >= known - 2 * PAGE, `${found.cachedTokens} of ${known}`);
      ids = [...ids, ...found.outputIds, ...idsOf(9, turn)];
    }
    // Another answer after the second prompt: a prefix that ends between two states.
    const other = [...ids.slice(0, 140), ...idsOf(5, 9)];
    const [found, expected] = [await generate(engine, other, 20), await generate(plain, other, 20)];
    assert.deepEqual(found.outputIds, expected.outputIds);
    assertNothingHeld(engine);
  });
}

for (
  const [name, roundsPerSync, groups] of [
    ["lfm2", 32, "one"],
    ["qwen3_5", 32, "one"],
    ["lfm2", 4, "two"],
    ["gpt_oss", 32, "two"],
  ] as const
) {
  const { test } = name === "lfm2" ? Deno : drawn;
  test(`${name}: an answer that ends within ${groups} of ${roundsPerSync} rounds is found in the next turn`, async () => {
    const limits = { maxBatch: 2, contextLength: 512, roundsPerSync };
    using engine = await open(name, limits, machineOf({ kernels: "software", groups }));
    using plain = await openPlain(name, 512);
    let asked = [idsOf(70, 1), idsOf(33, 2)];
    for (let turn = 0; turn < 5; turn++) {
      const found = await Promise.all(
        asked.map((ids, i) => generate(engine, ids, [14 + turn, 60][i]!)),
      );
      for (const [i, ids] of asked.entries()) {
        const { outputIds } = await generate(plain, ids, [14 + turn, 60][i]!);
        assert.deepEqual(found[i]!.outputIds, outputIds, `turn ${turn}, request ${i}`);
        // All but the last token of the text before are stored, of which the whole pages before the last are found.
        const known = turn === 0 ? 0 : ids.length - 9 - 2;
        assert.equal(found[i]!.cachedTokens, known - known % PAGE, `turn ${turn}, request ${i}`);
      }
      asked = asked.map((ids, i) => [...ids, ...found[i]!.outputIds, ...idsOf(9, turn)]);
    }
    assertNothingHeld(engine);
  });
}

Deno.test("lfm2: a prompt whose last token alone is left has no state to keep yet", async () => {
  using engine = await open("lfm2", { contextLength: 512 });
  using plain = await openPlain("lfm2", 512);
  await generate(engine, idsOf(20, 3), 20);
  // Forwards of prompts have 64 rows here; the slot's length is still the last request's.
  await generate(engine, idsOf(65, 4), 1);
  const ids = [...idsOf(65, 4).slice(0, 40), ...idsOf(9, 5)];
  const [found, expected] = [await generate(engine, ids, 20), await generate(plain, ids, 20)];
  assert.deepEqual(found.outputIds, expected.outputIds);
  assert.equal(found.cachedTokens, 0);
});

for (const name of WINDOWS) {
  const { test } = name === "gpt_oss" ? Deno : drawn;
  test(`${name}: the third request behind one system message finds it cached`, async () => {
    using engine = await open(name, { contextLength: 512, maxBatchedRows: 64 });
    using plain = await openPlain(name, 512);
    assertRings(name, engine, plain);
    const system = idsOf(150, 5);
    for (const turn of [0, 1, 2, 3]) {
      const ids = [...system, ...idsOf(40 + turn, 6 + turn)];
      const found = await generate(engine, ids, 12);
      assert.deepEqual(found.outputIds, (await generate(plain, ids, 12)).outputIds);
      assert.equal(found.cachedTokens, turn < 2 ? 0 : 144, `request ${turn}`);
    }
    assertNothingHeld(engine);
  });
}

for (const name of ["qwen3_5", "lfm2"]) {
  exhaustive.test(`${name}: trees of a head, side by side and in later turns: the text is that without`, async () => {
    const target = `${folderOf(name)}/config.json`;
    const draft = await Deno.makeTempFile({ suffix: ".json" });
    const config = draftConfig(JSON.parse(await Deno.readTextFile(target)));
    await Deno.writeTextFile(draft, JSON.stringify(config));
    using engine = await openEngine({
      model: { random: { target, draft } },
      limits: { maxBatch: 2, contextLength: 512 },
      speculation: { speculate: { tree: treeNamed("3:6:24"), allSteps: false } },
    });
    await Deno.remove(draft);
    using plain = await open(name, { prefixCache: false, contextLength: 512 });
    let asked = [idsOf(70, 1), idsOf(33, 2)];
    let accepted = 0;
    for (let turn = 0; turn < 3; turn++) {
      const found = await Promise.all(asked.map((ids) => generate(engine, ids, 60 + turn)));
      for (const [i, ids] of asked.entries()) {
        const { outputIds } = await generate(plain, ids, 60 + turn);
        assert.deepEqual(found[i]!.outputIds, outputIds, `turn ${turn}, request ${i}`);
        assert.equal(turn > 0, found[i]!.cachedTokens > 0);
      }
      accepted += found.reduce((sum, { speculative }) => sum + speculative.accepted_tokens, 0);
      asked = asked.map((ids, i) => [...ids, ...found[i]!.outputIds, ...idsOf(9, turn)]);
    }
    assert.ok(accepted > 0, "no draft was accepted");
    assertNothingHeld(engine);
  });
}

function assertRings(name: string, { runner }: LocalEngine, plain: LocalEngine): void {
  const rings = [runner, plain.runner].map(({ models }) => models.windows.length);
  assert.deepEqual(rings, WINDOWS.includes(name) ? [1, 0] : [0, 0]);
}

/** The shapes of a golden for prompts of several thousand tokens. */
async function longConfig(name: string): Promise<string> {
  const path = await Deno.makeTempFile({ suffix: ".json" });
  const config = JSON.parse(await Deno.readTextFile(`${folderOf(name)}/config.json`));
  await Deno.writeTextFile(path, JSON.stringify({ ...config, max_position_embeddings: 8192 }));
  return path;
}

for (const name of ["lfm2", "qwen3_5"]) {
  const { test } = name === "lfm2" ? Deno : drawn;
  test(`${name}: a prompt is stored from the last state at or before what it shares with another`, async () => {
    const target = await longConfig(name);
    const model = { random: { target }, algorithm: "NONE" } as const;
    const limits = { contextLength: 2400, maxKvTokens: 4800 };
    using engine = await openEngine({ model, limits: { ...limits, maxBatch: 2 } });
    using plain = await openEngine({ model, limits: { ...limits, prefixCache: false } });
    await Deno.remove(target);
    const document = idsOf(2300, 1);
    const asked = [document, [...document.slice(0, 2200), ...idsOf(30, 2)]];
    // The second prompt waits for the state that it begins with: the first is still storing it.
    const found = await Promise.all(asked.map((ids) => generate(engine, ids, 8)));
    asked.push([...document, ...idsOf(9, 3)], document.slice(0, 100));
    for (const ids of asked.slice(2)) found.push(await generate(engine, ids, 8));
    for (const i of [1, 2]) {
      const { outputIds } = await generate(plain, asked[i]!, 8);
      assert.deepEqual(found[i]!.outputIds, outputIds, `prompt ${i}`);
    }
    const [first, shared, whole, short] = found.map(({ cachedTokens }) => cachedTokens);
    assert.deepEqual([first, short], [0, 0]);
    // A state is less than two pages and the rows of a round behind the end of a chunk.
    assert.ok(shared! > 2048 - 2 * PAGE && shared! <= 2200, `${shared}`);
    assert.ok(whole! > 2300 - 2 * PAGE && whole! <= 2300, `${whole}`);
    assertNothingHeld(engine);
  });
}

for (const name of ["qwen3_5", "lfm2", ...WINDOWS]) {
  const { test } = name === "lfm2" || name === "gpt_oss" ? Deno : drawn;
  test(`${name}: requests that are preempted have the text they have alone`, async () => {
    using engine = await open(name, {
      algorithm: "NGRAM",
      maxBatch: 3,
      maxKvTokens: WINDOWS.includes(name) ? 368 : 256,
      contextLength: 160,
      maxBatchedRows: 16,
    });
    using plain = await openPlain(name, 160);
    assertRings(name, engine, plain);
    await assertPreempted(engine, plain);
    assertNothingHeld(engine);
  });
}

for (const name of ["gpt_oss", "lfm2", "qwen3_5"]) {
  const { test } = name === "lfm2" ? Deno : drawn;
  test(`${name}: a prompt that is sent again is known but for its last page, one after the other or at once`, async () => {
    using engine = await open(name, { contextLength: 512, maxBatch: 4 });
    // A multiple of a page, whose state is behind the last token, and one whose last chunk is short.
    for (const length of [64, 65, 160, 321, 340]) {
      const known = Math.floor((length - 1) / PAGE) * PAGE;
      const inTurn = [];
      for (let i = 0; i < 3; i++) {
        inTurn.push((await generate(engine, idsOf(length, length), 5)).cachedTokens);
      }
      const atOnce = await Promise.all(
        [0, 1, 2, 3].map(() => generate(engine, idsOf(length, length + 1), 5)),
      );
      const cached = atOnce.map(({ cachedTokens }) => cachedTokens);
      assert.deepEqual(inTurn.slice(-1), [known], `${length}`);
      assert.deepEqual(cached.slice(-2), [known, known], `${length} at once`);
    }
    assertNothingHeld(engine);
  });
}

Deno.test("lfm2: a request whose answer is short takes one place for a state, and none without a whole page", async () => {
  using engine = await open("lfm2", { contextLength: 512, maxKvTokens: 2048 });
  assert.equal(engine.runner.states?.count, 3);
  const cached: number[] = [];
  for (const [length, seed] of [[40, 1], [40, 2], [40, 3], [12, 4], [40, 1], [40, 2], [40, 3]]) {
    cached.push((await generate(engine, idsOf(length!, seed!), 1)).cachedTokens);
  }
  assert.deepEqual(cached, [0, 0, 0, 0, 32, 32, 32]);
});

for (const name of ["lfm2", "qwen3_5"]) {
  const { test } = name === "lfm2" ? Deno : drawn;
  test(`${name}: an answer that the host ends within a group of rounds takes no other prompt's state`, async () => {
    const limits = {
      contextLength: 512,
      maxKvTokens: 2048,
      maxBatch: 1,
      roundsPerSync: 32,
    } as const;
    using engine = await open(name, limits);
    using plain = await openPlain(name, 512);
    assert.equal(engine.runner.states?.count, 3);
    const prompts = [1, 2, 3].map((seed) => idsOf(40, seed));
    for (const ids of prompts) await generate(engine, ids, 1);
    const { outputIds } = await generate(plain, prompts[2]!, 10);
    // The device stops at the first eight of these alone.
    const eosTokenIds = [...Array<number>(8).fill(outputIds[0]! + 1), outputIds[9]!];
    Object.assign(engine.outputs, { eosTokenIds });
    const job = { promptIds: prompts[2]!, sampling: GREEDY, maxTokens: 60, stop: [] };
    const ended = await resultOf(engine.submit({ ...job, ignoreEos: false }));
    assert.deepEqual([ended.finishReason, ended.outputIds], ["stop", outputIds]);
    const cached = [];
    for (const ids of prompts) cached.push((await generate(engine, ids, 1)).cachedTokens);
    assert.deepEqual(cached, [32, 32, 32]);
  });
}

Deno.test("a prompt that is sent again takes no other conversation's state", async () => {
  using engine = await open("lfm2", { contextLength: 512, maxKvTokens: 2048, maxBatch: 1 });
  const [own, other] = [idsOf(100, 1), idsOf(90, 2)];
  const first = await generate(engine, own, 30);
  for (let i = 0; i < 3; i++) await generate(engine, other, 30);
  const turn = await generate(engine, [...own, ...first.outputIds, ...idsOf(9, 3)], 3);
  assert.ok(turn.cachedTokens >= 129 - 2 * PAGE, `${turn.cachedTokens}`);
});

for (const [rows, beside] of [[256, 300], [1000, 0]] as const) {
  drawn.test(`states within a long prompt are at the same places with ${rows} rows, beside ${beside} tokens`, async () => {
    const config = JSON.parse(await Deno.readTextFile(`${folderOf("lfm2")}/config.json`));
    const target = await Deno.makeTempFile({ prefix: "eyrie-test-", suffix: ".json" });
    try {
      await Deno.writeTextFile(
        target,
        JSON.stringify({ ...config, max_position_embeddings: 8192 }),
      );
      using engine = await openEngine({
        model: { random: { target }, algorithm: "NONE" },
        limits: { contextLength: 2400, maxKvTokens: 9600, maxBatch: 3, maxBatchedRows: rows },
      });
      const long = idsOf(2300, 1);
      const prompts = [...beside > 0 ? [idsOf(beside, 7)] : [], long];
      await Promise.all(prompts.map((ids) => generate(engine, ids, 4)));
      const shared = await generate(engine, [...long.slice(0, 2200), ...idsOf(30, 2)], 4);
      assert.equal(shared.cachedTokens, 2048);
    } finally {
      await Deno.remove(target);
    }
  });
}
