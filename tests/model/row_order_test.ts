// A matrix whose rows are in another order than what reads its outputs takes is no plan.

import assert from "node:assert/strict";
import { Graph } from "../../src/model/graph/graph.ts";
import { LARGE, matrix } from "./layer_context.ts";

Deno.test("a linear takes the rows of its matrix in the order that it names, stacked by default", () => {
  const graph = new Graph();
  const x = graph.input("x", 1, 64, LARGE);
  const gateUp = matrix(32, 64, "gate_up");
  assert.equal(graph.linear(x, gateUp, { rowOrder: "gate_up", label: "gateUp" }).cols, 32);
  assert.throws(() => graph.linear(x, gateUp, { label: "o" }), {
    message: 'Cannot plan "o": its matrix has row order gate_up, not stacked',
  });
  assert.throws(
    () => graph.linear(x, matrix(32, 64), { rowOrder: "rope_halves", label: "qkv" }),
    { message: 'Cannot plan "qkv": its matrix has row order stacked, not rope_halves' },
  );
});
