/**
 * The project's claim in one test: neither drafters nor anything around them change a text. In each run a covering
 * array has every pair of values of all axes. Named configurations are always part of it; the others are drawn by the
 * commit's hash, so that every commit sees different ones.
 */
import assert from "node:assert/strict";
import { hash32 } from "../../src/speculate/noise.ts";
import { SEED, SEED_VARIABLE } from "../exhaustive.ts";
import { type Case, isPossible, RUN_AXES } from "./axes.ts";
import { NAMED, PREEMPTED } from "./named.ts";
import { coveringArray } from "./pairs.ts";
import { openReferences, runCase } from "./run.ts";

/** The cases of a run, first those that have names. */
export function casesOf(seed: number): Case[] {
  let at = 0;
  const random = () => hash32(seed, at++, 5) / 2 ** 32;
  const given = Object.values(NAMED);
  return coveringArray<typeof RUN_AXES>(RUN_AXES, isPossible, random, {
    given,
    // The first value of each, which costs least, is taken wherever another would show no new pair.
    firstPreferred: ["kernels", "maxBatch", "numbers"],
  });
}

/** Declares the tests of the cases that run these kernels: both files run side by side. */
export function testCases(kernels: Case["kernels"]): void {
  const references = openReferences();
  const names = Object.keys(NAMED);
  for (const [i, each] of casesOf(SEED).entries()) {
    if (each.kernels !== kernels) continue;
    const values = Object.entries(each).map(([axis, value]) => `${axis} ${value}`).join(", ");
    const name = names[i] ?? `${SEED_VARIABLE}=${SEED}`;
    Deno.test(`drafted text is plain text (${name}): ${values}`, async () => {
      const { preemptions } = await runCase(each, references);
      if (name === PREEMPTED) assert.ok(preemptions > 0, "none was preempted");
    });
  }
  Deno.test.afterAll(async () => await references[Symbol.asyncDispose]());
}
