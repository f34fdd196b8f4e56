import assert from "node:assert/strict";
import { PLAIN_SAMPLING } from "../../src/engine/device/choice/choice.ts";
import { packing } from "../../src/engine/device/packed/packing.ts";
import { partialRounds } from "../../src/engine/device/packed/packed_rounds.ts";
import { packedRows } from "../../src/speculate/costs/cost_buckets.ts";
import { batchBucket, rowBucket } from "../../src/engine/device/buckets.ts";
import { LONG_PREFILL_ROWS } from "../../src/model/device_layout.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";

const RANKING = { packs: true, ranks: true };
const of = { batch: 4, bucket: 4, choice: PLAIN_SAMPLING, rounds: RANKING };
const shape = chain(5);
const verify = { drafts: 7, slope: 1, intercepts: [0, 0, 0, 0, 0], minConfidence: 0 };

Deno.test("a round has rows for what is verified, up to the next of a few counts", () => {
  const rows = (depths: number[]) => packing({ shape, depths }, of).packed;
  assert.deepEqual([[0, 0, 0, 0], [1, 0, 0, 0], [2, 2, 2, 2], [2, 3, 2, 2]].map(rows), [
    4,
    6,
    12,
    16,
  ]);
  // No fewer than the 24 of all drafts.
  assert.deepEqual([[5, 5, 3, 3], [5, 5, 5, 5]].map(rows), [undefined, undefined]);
  assert.equal(packing({ shape }, of).packed, undefined);
});

Deno.test("a budget leaves the depths to the device, within what each may have", () => {
  assert.deepEqual(packing({ shape, verify }, of), {
    packed: 12,
    depths: [5, 5, 5, 5],
    budget: verify,
  });
  const depths = [1, 0, 2, 0];
  assert.deepEqual(packing({ shape, verify, depths }, of), { packed: 8, depths, budget: verify });
  const all = { ...verify, drafts: 20 };
  assert.deepEqual(packing({ shape, verify: all }, of).packed, undefined);
  assert.deepEqual(packing({ shape, verify: all }, of).budget, all);
});

Deno.test("where it cannot be had a budget is not used, and depths are counts of padded rows", () => {
  const depths = [1, 0, 2, 0];
  const whole = { packed: undefined, depths, budget: undefined };
  const masked = { ...PLAIN_SAMPLING, masked: true };
  const told = { ...PLAIN_SAMPLING, logprobs: 0 };
  assert.deepEqual(packing({ shape, verify, depths }, { ...of, choice: masked }), whole);
  assert.deepEqual(packing({ shape, verify, depths }, { ...of, choice: told }), whole);
  assert.deepEqual(packing({ shape, verify, depths, proposals: [] }, of), whole);
  assert.deepEqual(packing({ shape: chain(0), verify, depths }, of), whole);
  assert.deepEqual(packing({ shape: treeNamed("5:4:8"), verify, depths }, of), whole);
  const none = { packs: false, ranks: false };
  assert.deepEqual(packing({ shape, verify, depths }, { ...of, rounds: none }), whole);
  const unranked = packing({ shape, verify, depths }, { ...of, rounds: { ...none, packs: true } });
  assert.deepEqual(unranked, { packed: 8, depths, budget: undefined });
});

Deno.test("the rounds made at start are all that may be wanted, and few", () => {
  const most = 12;
  const tiers = [...chains([0, 1, 3]), treeNamed("3:2:6")];
  const made = new Set(partialRounds(tiers, most, true).map((one) => JSON.stringify(one)));
  const wanted = new Set<string>();
  for (const shape of chains([1, 3])) {
    for (let batch = 1; batch <= most; batch++) {
      const bucket = batchBucket(batch, most);
      for (let drafts = 0; drafts <= batch * shape.depth; drafts++) {
        const packed = packedRows(batch + drafts, { batch: bucket, depth: shape.depth });
        const round = { ...shape, batch: bucket, ...packed && { packed } };
        wanted.add(JSON.stringify({ ...round, allocates: true }));
        if (packed) wanted.add(JSON.stringify({ ...round, allocates: false }));
      }
    }
  }
  assert.deepEqual([...made].toSorted(), [...wanted].toSorted());
  const packed = new Set(partialRounds(chains([1, 3, 5, 7]), 32, true).map(({ packed }) => packed));
  assert.ok(packed.size <= 16, `${packed.size} numbers of rows`);
});

Deno.test("programs are made for few lengths of chunks, whatever prompts leave over", () => {
  const lengths = Array.from({ length: LONG_PREFILL_ROWS }, (_, i) => i + 1);
  const buckets = new Set(lengths.map(rowBucket));
  assert.ok(buckets.size <= 10, `${buckets.size} of them`);
  assert.ok(
    lengths.every((rows) => rowBucket(rows) >= rows && rowBucket(rows) <= LONG_PREFILL_ROWS),
  );
});
