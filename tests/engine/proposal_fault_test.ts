import assert from "node:assert/strict";
import { neighbours, packProposal, proposalFault } from "../../src/engine/device/proposals.ts";
import type { Proposal } from "../../src/speculate/trees.ts";
import { chainOf } from "../reference/trees.ts";

const ROOM = { depth: 40, width: 2, rows: 41, vocabSize: 10 };

/** A wrong token, and beside it a chain whose rows are one more than their level. */
function besideOne(levels: number): Proposal {
  const rows = Array.from({ length: levels }, (_, i) => i);
  return { tokens: [9, ...rows.map(() => 1)], parents: [0, ...rows.map((i) => i && i + 1)] };
}

Deno.test("proposals: chains of any depth fit, off the first chain 16 levels", () => {
  assert.equal(proposalFault(chainOf(Array(40).fill(3)), ROOM), undefined);
  assert.equal(proposalFault(besideOne(16), ROOM), undefined);
  const fault = "token 17 has 17 levels beside the first chain, there is room for 16";
  assert.equal(proposalFault(besideOne(17), ROOM), fault);
});

Deno.test("proposals: no id or parent but whole numbers in range", () => {
  for (const id of [-1, 10, 1.5, NaN]) {
    assert.equal(proposalFault(chainOf([id]), ROOM), `token id ${id} is none of 0 to 9`);
  }
  for (const row of [-1, 1, 0.5, NaN]) {
    const fault = proposalFault({ tokens: [1], parents: [row] }, ROOM);
    assert.equal(fault, `the parent of token 0 is row ${row}`);
  }
});

Deno.test("proposals: words are the count, tokens and parents in their places", () => {
  const words = packProposal({ tokens: [7, 8], parents: [0, 0] }, 4);
  assert.deepEqual([...words], [2, 7, 8, 0, 0, 0, 0]);
  assert.deepEqual([...packProposal(chainOf([7, 8, 9]), 4)], [3, 7, 8, 9, 0, 1, 2]);
});

Deno.test("proposals: slots side by side are written at once", () => {
  assert.deepEqual(neighbours([2, 0, 1]), [[1, 2, 0]]);
  assert.deepEqual(neighbours([5, 1, 2, 7, 4]), [[1, 2], [4, 0], [3]]);
  assert.deepEqual(neighbours([]), []);
});
