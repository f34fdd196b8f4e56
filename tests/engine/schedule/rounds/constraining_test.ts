import assert from "node:assert/strict";
import type { Constraint } from "../../../../src/grammar/constraint.ts";
import type { OutputAccumulator } from "../../../../src/engine/schedule/output.ts";
import type { RequestState } from "../../../../src/engine/schedule/request_state.ts";
import { constrained } from "../../../../src/engine/schedule/rounds/constraining.ts";
import type { RoundRequest } from "../../../../src/engine/device/runner.ts";
import { chain, chains } from "../../../../src/speculate/round_shape.ts";
import { NO_PROPOSAL, type Proposal } from "../../../../src/speculate/trees.ts";
import { chainOf } from "../../../reference/trees.ts";

const OF = {
  capacity: { shapes: chains([0, 2, 3, 7]) },
  vocabSize: 40,
  attempt: (_: RequestState, action: () => void) => action(),
};

/** Forces these tokens, allows even ones, and fills its rows with a number. */
function state(
  forced: readonly number[] | undefined,
  { left = 99, numSteps, fill = 7 }: { left?: number; numSteps?: number; fill?: number } = {},
): RequestState {
  const constraint: Pick<Constraint, "forced" | "pruned" | "fill"> = {
    forced: (depth) => chainOf((forced ?? []).slice(0, Math.max(0, depth))),
    pruned: ({ tokens }) => chainOf(tokens.filter((token) => token % 2 === 0)),
    fill: ({ tokens }, into) => {
      into.fill(0xffffffff);
      into.fill(fill, 0, 2 * (tokens.length + 1));
    },
  };
  return {
    constraint: forced && constraint as Constraint,
    output: { left } as OutputAccumulator,
    request: { ...numSteps === undefined ? {} : { numSteps } },
  } as RequestState;
}

const plain: RoundRequest = { shape: chain(0), count: 5 };

Deno.test("without grammars nothing changes", () => {
  assert.equal(constrained([state(undefined)], plain, OF), plain);
});

Deno.test("one round a sync, and forced tokens in the smallest chain that holds them", () => {
  const { maskFor, ...asked } = constrained([state([2, 4, 6]), state(undefined)], plain, OF);
  assert.ok(maskFor);
  const proposals = [chainOf([2, 4, 6]), NO_PROPOSAL];
  assert.deepEqual(asked, { shape: chain(3), count: 1, proposals });
  const longer = constrained([state([2, 4, 6, 8]), state([2])], plain, OF);
  assert.deepEqual(longer.shape, chain(7));
});

Deno.test("the device drafts where it drafts more than is forced", () => {
  const asked = { shape: chain(2), count: 3, depths: [2, 1] };
  const device = constrained([state([2, 4]), state([8])], asked, OF);
  assert.deepEqual([device.shape, device.count, device.depths], [chain(2), 1, [2, 1]]);
  assert.equal(device.proposals, undefined);
  const host = constrained([state([2, 4, 6]), state([8])], asked, OF);
  assert.deepEqual([host.shape, host.depths], [chain(3), undefined]);
});

Deno.test("nothing is forced where no drafts are asked for, or that could not become output", () => {
  const { proposals } = constrained(
    [state([2, 4, 6], { left: 2 }), state([2, 4], { numSteps: 0 })],
    plain,
    OF,
  );
  assert.deepEqual(proposals, [chainOf([2]), NO_PROPOSAL]);
  const last = constrained([state([2], { left: 1 })], plain, OF);
  assert.deepEqual([last.proposals, last.shape, last.count], [undefined, chain(0), 1]);
});

Deno.test("what the host drafted is pruned; where nothing is left, what is forced", () => {
  const asked = { shape: chain(2), count: 1, proposals: [[1, 2], [3], [5, 7]].map(chainOf) };
  const { proposals, shape } = constrained(
    [state([]), state([8, 6, 4]), state(undefined)],
    asked,
    OF,
  );
  assert.deepEqual(proposals, [chainOf([2]), chainOf([8, 6]), chainOf([5, 7])]);
  assert.deepEqual(shape, chain(2));
  const predicted = asked.proposals.map((proposal) => ({ ...proposal, predicted: true }));
  const { proposals: kept } = constrained(
    [state([]), state([8, 6, 4]), state(undefined)],
    { ...asked, proposals: predicted },
    OF,
  );
  assert.deepEqual(kept?.map((one) => one?.predicted ?? false), [true, false, true]);
});

Deno.test("masks: of each its own, all ones for those without a grammar", async () => {
  const states = [state([2], { fill: 5 }), state(undefined), state([], { fill: 9 })];
  const { maskFor, shape } = constrained(states, { ...plain, shape: chain(2) }, OF);
  const drafts: Proposal[] = [chainOf([2]), chainOf([3, 3]), NO_PROPOSAL];
  const masks = await maskFor?.(drafts);
  const all = 0xffffffff;
  assert.equal(shape.rows, 3);
  assert.deepEqual([...masks ?? []], [
    ...[5, 5, 5, 5, all, all],
    ...Array(6).fill(all),
    ...[9, 9, all, all, all, all],
  ]);
});
