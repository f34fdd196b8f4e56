import assert from "node:assert/strict";
import { chain, isChain, MAX_ROWS } from "../../src/speculate/round_shape.ts";
import { depthsOf, NO_PROPOSAL, pathTo, type Proposal } from "../../src/speculate/trees.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { acceptChain } from "../reference/acceptance.ts";
import { buildTree, levelParents, links, organizeDrafts } from "../reference/eagle_tree.ts";
import { TREE_CASES } from "../reference/eagle_tree_cases.ts";
import { acceptTree, chainOf } from "../reference/trees.ts";

for (const [i, { levels, length, expected }] of TREE_CASES.entries()) {
  Deno.test(`EAGLE's tree, golden request ${i}`, () => {
    assert.deepEqual(levelParents(levels), expected.parents);
    const { selected, parentList } = organizeDrafts(levels, 8);
    assert.deepEqual([selected, parentList], [expected.selected, expected.parentList]);
    const tree = buildTree(levels, 8);
    assert.deepEqual(tree, { tokens: expected.tokens, parents: expected.parent });
    assert.deepEqual(links(tree), { next: expected.next, sibling: expected.sibling });
    assert.deepEqual(depthsOf(tree).map((depth) => length + depth), expected.positions);
    const masks = expected.mask.map((_, row) =>
      pathTo(tree, row).reduce((bits, at) => bits | 1 << at, 0)
    );
    assert.deepEqual(masks, expected.mask);
  });
}

/** SGLang's verify_tree_greedy: two requests, all choices 18 but those named. */
const GREEDY = [
  {
    tree: { tokens: [1, 2, 3, 4, 5], parents: [0, 1, 0, 3, 4] },
    choices: { 0: 3, 3: 4, 4: 5 },
    expected: { accepted: 3, ids: [3, 4, 5, 18], rows: [0, 3, 4, 5] },
  },
  {
    tree: { tokens: [8, 9, 10, 11, 12], parents: [0, 1, 2, 0, 4] },
    choices: { 0: 11, 4: 12 },
    expected: { accepted: 2, ids: [11, 12, 18], rows: [0, 4, 5] },
  },
] as const;

for (const [i, { tree, choices, expected }] of GREEDY.entries()) {
  Deno.test(`acceptTree: golden request ${i} of verify_tree_greedy`, () => {
    const all = Array.from({ length: 6 }, (_, row) =>
      Object.entries(choices)
        .find(([at]) => Number(at) === row)?.[1] ?? 18);
    assert.deepEqual(acceptTree(tree, all), expected);
  });
}

Deno.test("acceptTree: of equal siblings the first, a match elsewhere in the tree does not count", () => {
  const tree: Proposal = { tokens: [7, 7, 9, 9], parents: [0, 0, 2, 1] };
  assert.deepEqual(acceptTree(tree, [7, 9, 9, 5, 6]), {
    accepted: 2,
    ids: [7, 9, 6],
    rows: [0, 1, 4],
  });
  assert.deepEqual(acceptTree(tree, [9, 7, 7, 5, 6]), { accepted: 0, ids: [9], rows: [0] });
  assert.deepEqual(acceptTree(NO_PROPOSAL, [4]), { accepted: 0, ids: [4], rows: [0] });
});

Deno.test("acceptTree: of chains it is acceptChain", () => {
  for (let seed = 0; seed < 200; seed++) {
    const drafts = Array.from({ length: seed % 9 }, (_, i) => hash32(seed, i, 1) % 3);
    const choices = Array.from({ length: drafts.length + 1 }, (_, i) => hash32(seed, i, 2) % 3);
    const { accepted, ids } = acceptTree(chainOf(drafts), choices);
    assert.deepEqual({ accepted, ids }, acceptChain(drafts, choices));
  }
});

Deno.test("shapes: chains are as deep as their rows say, trees are no chains", () => {
  assert.deepEqual(chain(3), { depth: 3, width: 1, rows: 4 });
  assert.ok(isChain(chain(0)) && isChain(chain(MAX_ROWS - 1)));
  assert.ok(!isChain({ depth: 2, width: 2, rows: 7 }) && !isChain({ depth: 2, width: 1, rows: 7 }));
});
