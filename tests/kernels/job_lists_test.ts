import assert from "node:assert/strict";
import { jobLists, listWords, maxTiles } from "../../kernels/experts/job_lists.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { openDevice } from "../gpu/device.ts";
import { shuffled } from "../gpu/numbers.ts";
import { exhaustive } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const NOTHING = 0xffffffff;

interface Case {
  readonly rows: number;
  readonly topK: number;
  readonly numExperts: number;
  readonly tile: number;
  readonly software: boolean;
}

/** topK different experts for each row, some of them popular; no row has the last one. */
function choices({ rows, topK, numExperts }: Case): number[] {
  const most = Math.max(topK, numExperts - 1);
  return Array.from({ length: rows }, (_, r) => shuffled(most, r % 7).slice(0, topK)).flat();
}

async function listed(experts: readonly number[], of: Case): Promise<number[][]> {
  const words = listWords(of, of.tile);
  const tiles = device.words(new Uint32Array(words).fill(12345));
  const shape = { ...of, tuning: tuning(of.software, device.gpu.limits), label: "test" };
  await device.run([jobLists({ experts: device.words(experts), tiles }, shape)]);
  const found = [...await device.readWords(tiles)].slice(0, words);
  return Array.from(
    { length: maxTiles(of, of.tile) },
    (_, t) => found.slice(t * (1 + of.tile), (t + 1) * (1 + of.tile)),
  );
}

/** The expert and the jobs of each tile in use; the jobs may be in any order. */
function checked(tiles: readonly number[][], experts: readonly number[], { tile }: Case) {
  const used = tiles.filter(([expert]) => expert !== NOTHING);
  assert.ok(tiles.slice(used.length).every(([expert]) => expert === NOTHING), "left over: last");
  const jobs = used.map(([expert, ...list]) => {
    const own = list.filter((job) => job !== NOTHING);
    assert.ok(list.slice(own.length).every((job) => job === NOTHING), "NOTHING comes last");
    assert.ok(own.length > 0);
    assert.ok(own.every((job) => experts[job] === expert), `tile of expert ${expert}: ${list}`);
    return { expert: expert ?? NaN, count: own.length, own };
  });
  assert.deepEqual(jobs.flatMap(({ own }) => own).toSorted((a, b) => a - b), [...experts.keys()]);
  for (const [i, { expert, count }] of jobs.entries()) {
    const next = jobs[i + 1];
    // In the order of the experts, and all tiles of one full but its last.
    if (next) assert.ok(next.expert >= expert);
    if (next?.expert === expert) assert.equal(count, tile);
  }
}

const SIZES: readonly Omit<Case, "tile" | "software">[] = [
  { rows: 1, topK: 3, numExperts: 5 },
  { rows: 9, topK: 2, numExperts: 6 },
  { rows: 4, topK: 1, numExperts: 1 },
  { rows: 33, topK: 8, numExperts: 128 },
  { rows: 67, topK: 6, numExperts: 300 }, // more experts than lanes
];

for (const [i, size] of SIZES.entries()) {
  for (const [j, tile] of [1, 2, 4, 8, 16, 32, 64].entries()) {
    const { rows, topK, numExperts } = size;
    // Each tile and each size in turn.
    const { test } = (i + j) % 3 === 0 ? Deno : exhaustive;
    test(`job lists: ${rows} x ${topK} of ${numExperts} in tiles of ${tile}`, async () => {
      for (const software of [true, false]) {
        const of = { ...size, tile, software };
        const experts = choices(of);
        checked(await listed(experts, of), experts, of);
      }
    });
  }
}

Deno.test("job lists: one expert for all leaves the other tiles", async () => {
  const of: Case = { rows: 21, topK: 2, numExperts: 40, tile: 4, software: false };
  const experts = Array.from({ length: 42 }, (_, j) => j % 2 ? 39 : 0);
  checked(await listed(experts, of), experts, of);
});
