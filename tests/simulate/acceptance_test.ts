import assert from "node:assert/strict";
import {
  type AcceptanceModel,
  acceptedFrom,
  betaMixed,
  byPosition,
  confidenceAt,
  geometric,
  isRight,
  meanTokens,
  spreadOut,
} from "../../src/simulate/acceptance/model.ts";
import { phasesOfText, phasesOfTime, phasesOfWork } from "../../src/simulate/acceptance/phases.ts";
import { replayed } from "../../src/simulate/acceptance/replay.ts";
import { acceptanceOf } from "../../src/simulate/acceptance/text.ts";
import { drawAccepted } from "../reference/simulated.ts";

const START = { ms: 0, tokens: 0 };
const LONG = { tokens: 0, seed: 3 };

function close(found: number, expected: number, tolerance: number): void {
  assert.ok(Math.abs(found - expected) < tolerance, `${found} is not ${expected}`);
}

Deno.test("geometric: tokens a round are (1 - alpha^(K+1)) / (1 - alpha)", () => {
  for (const [alpha, steps] of [[0.3, 2], [0.7, 4], [0.9, 7]] as const) {
    const expected = (1 - alpha ** (steps + 1)) / (1 - alpha);
    close(meanTokens(geometric(alpha), steps, LONG), expected, 0.03);
  }
});

Deno.test("positions: the chance of each draft after those before it, the last for all further", () => {
  // 1 + 0.8 + 0.8 0.5 + 0.8 0.5 0.5
  close(meanTokens(byPosition([0.8, 0.5]), 3, LONG), 2.4, 0.02);
});

Deno.test("beta: E[alpha^k] = product of (a + i) / (a + b + i)", () => {
  const [a, b] = [3, 2];
  const alphas = Array.from(
    { length: 4000 },
    (_, seed) => betaMixed(a, b).open(seed, 0).chance(0, 0, START),
  );
  const moment = (k: number) => alphas.reduce((sum, alpha) => sum + alpha ** k, 0) / alphas.length;
  close(moment(1), 3 / 5, 0.01);
  close(moment(2), 3 / 5 * 4 / 6, 0.01);
  close(moment(3), 3 / 5 * 4 / 6 * 5 / 7, 0.01);
});

Deno.test("phases of a text: geometric stays, whatever order positions come in", () => {
  const request = phasesOfText([0.1, 0.9], 50).open(5, 0);
  const read = (at: number) => request.chance(at, 0, START);
  const forward = Array.from({ length: 20_000 }, (_, at) => read(at));
  assert.deepEqual(
    [9_000, 17, 19_999, 0].map(read),
    [9_000, 17, 19_999, 0].map((at) => forward[at]),
  );
  const changes = forward.filter((chance, at) => at > 0 && chance !== forward[at - 1]).length;
  close(20_000 / (changes + 1), 50, 8);
  close(forward.filter((chance) => chance === 0.9).length / 20_000, 0.5, 0.06);
});

Deno.test("phases of time and of work go by what has passed", () => {
  const time = phasesOfTime([0.1, 0.2, 0.3], 10).open(1, 0);
  assert.deepEqual([0, 9, 10, 29, 30].map((ms) => time.chance(0, 0, { ms, tokens: 0 })), [
    ...[0.1, 0.1, 0.2, 0.3, 0.1],
  ]);
  const work = phasesOfWork([0.1, 0.2], 5).open(1, 0);
  assert.deepEqual([4, 5].map((tokens) => work.chance(0, 0, { ms: 0, tokens })), [0.1, 0.2]);
});

Deno.test("spread: log-odds differ by request and by token as said, and not from round to round", () => {
  const model = spreadOut(geometric(0.7), { requests: 0.5, tokens: 1.5 });
  const odds = (seed: number, at: number) => {
    const chance = model.open(seed, 0).chance(at, 0, START);
    return Math.log(chance / (1 - chance));
  };
  const all = Array.from(
    { length: 200 },
    (_, seed) => Array.from({ length: 200 }, (_, at) => odds(seed, at)),
  );
  const means = all.map((row) => row.reduce((sum, each) => sum + each, 0) / row.length);
  const sd = (list: readonly number[]) => {
    const mean = list.reduce((sum, each) => sum + each, 0) / list.length;
    return Math.sqrt(list.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (list.length - 1));
  };
  close(sd(means), Math.hypot(0.5, 1.5 / Math.sqrt(200)), 0.08);
  close(sd(all[3] as number[]), 1.5, 0.2);
  assert.equal(odds(9, 4), odds(9, 4));
});

Deno.test("the same coins as the engine's simulated acceptance", () => {
  const chances = [0.8, 0.6, 0.5].map(Math.fround);
  for (let seed = 0; seed < 200; seed++) {
    const request = byPosition(chances).open(seed, 0);
    for (const length of [1, 17, 400]) {
      const expected = drawAccepted(chances, { seed, length, numSteps: 5 });
      assert.equal(acceptedFrom(length + 1, 5, { seed, request, now: START }), expected);
    }
  }
});

Deno.test("confidence is of the place: it tells nothing of the coin", () => {
  const chance = 0.6;
  const mean = (right: boolean) => {
    const told = Array.from({ length: 8000 }, (_, position) => position)
      .filter((position) => isRight(4, position, chance) === right)
      .map((position) => confidenceAt({ seed: 4, position, chance, sigma: 1 }));
    return told.reduce((sum, each) => sum + each, 0) / told.length;
  };
  close(mean(true), mean(false), 0.02);
  close(confidenceAt({ seed: 1, position: 1, chance, sigma: 0 }), 0.6, 1e-12);
});

/** Rounds of one request from its first token on. */
function roundsOf(model: AcceptanceModel, seed: number, depth: number, count: number): number[] {
  const request = model.open(seed, 0);
  let at = 0;
  return Array.from({ length: count }, () => {
    const accepted = acceptedFrom(at, depth, { seed, request, now: START });
    at += accepted + 1;
    return accepted;
  });
}

Deno.test("replay: at the recorded depth come the recorded rounds, from one of them on and round", () => {
  const accepted = [2, 0, 1, 0, 2, 2, 1];
  const drawn = replayed([accepted.map((each) => ({ drafted: 3, accepted: each }))]);
  const twice = [...accepted, ...accepted].join();
  for (let seed = 0; seed < 40; seed++) {
    assert.ok(twice.includes(roundsOf(drawn, seed, 3, 7).join()), `seed ${seed}`);
  }
  // At depth 1 the same texts: 2 accepted of which one is the bonus, 0, ...
  const shallow = roundsOf(drawn, 0, 1, 5);
  assert.ok(shallow.every((each) => each <= 1));
});

Deno.test("replay: where nothing was drafted the chance is the run's, successes over trials", () => {
  const chains = [{ drafted: 2, accepted: 2 }, { drafted: 2, accepted: 1 }, {
    drafted: 0,
    accepted: 0,
  }];
  const request = replayed([chains]).open(0, 0);
  const chances = Array.from({ length: 6 }, (_, at) => request.chance(at, 0, START));
  // 3 of 4 drafts that were tested; right, right, not drafted, right, wrong, not drafted.
  assert.deepEqual(chances.toSorted(), [0, 0.75, 0.75, 1, 1, 1]);
  assert.equal(request.confidence?.(0, 0, START), 0.75);
  assert.equal(replayed([]).open(1, 0).chance(1, 1, START), 0);
});

Deno.test("--simulate-acceptance: every form, and what is wrong with others", () => {
  const replay = () => geometric(0.5);
  const named = (text: string) => acceptanceOf(text, replay).name;
  assert.equal(named("geometric:0.7"), "geometric:0.7");
  assert.equal(named("positions:0.8/0.6"), "positions:0.8/0.6");
  assert.equal(named("beta:3/2,spread=0.5"), "beta:3/2,spread=0.5,tokens=0");
  assert.equal(named("phases:0.3/0.9"), "phases:0.3/0.9,dwell=150");
  assert.equal(named("phases:0.3/0.9,every=2"), "phases:0.3/0.9,every=2");
  assert.equal(named("replay:run.jsonl"), "geometric:0.5");
  const refused = {
    "geometric": /allowed is geometric:A, positions:A\/B\/C/,
    "geometric:1.5": /probabilities are from 0 to 1/,
    "geometric:0.1/0.2": /geometric has one number/,
    "beta:0/2": /beta has two numbers above 0/,
    "phases:0.3": /phases has two numbers or more/,
    "phases:0.3/0.4,dwell=0": /dwell is tokens, 1 or more/,
    "geometric:0.7,dwell=3": /geometric has no option "dwell"/,
    "geometric:0.7,spread": /options are key=number/,
    "geometric:x": /"x" is not a number/,
    "coin:0.5": /allowed is geometric:A/,
  };
  for (const [text, message] of Object.entries(refused)) {
    assert.throws(() => acceptanceOf(text, replay), message, text);
  }
});
