/**
 * Trees of the host that are right in part, with layers that have states or windows: requests side by side, in later
 * turns of conversations, where a group of rounds may begin before the last is read.
 */
import assert from "node:assert/strict";
import { pureDrafter } from "../../src/draft/host_drafter.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import type { Proposal } from "../../src/speculate/trees.ts";
import { drawn, SEED, SEED_VARIABLE } from "../exhaustive.ts";
import { machineOf } from "../lossless/run.ts";
import { generate, idsOf } from "./greedy.ts";
import { assertNothingHeld } from "./held.ts";
import { openEngine } from "./open.ts";
import { folderOf } from "./speculated.ts";

const VOCAB = 320;
const SHAPES = [chain(2), { depth: 3, width: 2, rows: 8 }, { depth: 6, width: 4, rows: 20 }];

/**
 * A tree of `count` nodes or fewer. Nodes that continue `text` have its next token four times out of five, so that the
 * right path goes through rows that do not follow each other.
 */
function drawnTree(
  text: readonly number[],
  { depth, count }: { readonly depth: number; readonly count: number },
  draw: (below: number) => number,
): Proposal {
  const tokens: number[] = [];
  const parents: number[] = [];
  const rows = [{ level: 0, right: true }];
  while (tokens.length < count) {
    const drawnParent = draw(3) > 0 ? rows.length - 1 : draw(rows.length);
    const parent = rows[drawnParent]!.level < depth ? drawnParent : 0;
    const { level, right } = rows[parent]!;
    const next = right && draw(5) > 0 ? text[level] : undefined;
    const token = next ?? draw(VOCAB);
    // Two children of a row differ.
    if (parents.some((one, i) => one === parent && tokens[i] === token)) break;
    tokens.push(token);
    parents.push(parent);
    rows.push({ level: level + 1, right: right && token === text[level] });
  }
  return { tokens, parents };
}

/** Tokens of keys and values: so few that requests are preempted, or so many that windows have rings. */
const CASES = [["lfm2", 272], ["qwen3_5", 272], ["gpt_oss", 480], ["gemma3", 480]] as const;

for (const [name, maxKvTokens] of CASES) {
  const { test } = name === "lfm2" ? Deno : drawn;
  test(`${name}: trees of the host that are right in part: the text is that without (${SEED_VARIABLE}=${SEED})`, async () => {
    const random = { target: `${folderOf(name)}/config.json` };
    const model = { random, algorithm: "NONE" } as const;
    const contextLength = 208;
    using plain = await openEngine({
      model,
      limits: { contextLength, prefixCache: false, maxBatchedRows: 1024 },
    });
    /** Prompts with their answers. */
    const known: (readonly number[])[] = [];
    let drawnBefore = 0;
    const draw = (below: number) => hash32(SEED, drawnBefore++, 5) % below;
    const drafter = pureDrafter({
      name: "known",
      shapes: SHAPES,
      propose(ids, room) {
        const text = known.find((one) => ids.every((id, i) => id === one[i])) ?? [];
        return drawnTree(text.slice(ids.length), { ...room, count: draw(room.count + 1) }, draw);
      },
    });
    using engine = await openEngine({
      model,
      limits: { contextLength, maxBatch: 3, maxKvTokens, maxBatchedRows: 32 },
      hooks: { drafter },
    }, machineOf({ kernels: "software", groups: "two" }));
    assert.equal(engine.runner.models.windows.length > 0, maxKvTokens === 480);
    let asked = [33, 48, 17, 16].map(idsOf);
    let [accepted, cached] = [0, 0];
    for (let turn = 0; turn < 3; turn++) {
      const lengths = asked.map((_, i) => 18 + (7 * i + 5 * turn) % 16);
      for (const [i, ids] of asked.entries()) {
        known.push([...ids, ...(await generate(plain, ids, lengths[i]!)).outputIds]);
      }
      const expected = known.slice(-asked.length);
      const found = await Promise.all(asked.map((ids, i) => generate(engine, ids, lengths[i]!)));
      for (const [i, { outputIds, cachedTokens, speculative }] of found.entries()) {
        assert.deepEqual([...asked[i]!, ...outputIds], expected[i], `turn ${turn}, request ${i}`);
        accepted += speculative.accepted_tokens;
        cached += cachedTokens;
      }
      assertNothingHeld(engine);
      asked = expected.map((ids, i) => [...ids, ...idsOf(5 + i, turn)]);
    }
    assert.ok(accepted > 60 && cached > 0, `${accepted} accepted, ${cached} cached`);
  });
}
