import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import { closedLoop } from "../../../src/arrivals/arrival.ts";
import { rateCase, traceCase } from "../../../src/measure/load/plan.ts";
import { requestsOf } from "../../../src/measure/load/request.ts";
import { openWorkload } from "../../../src/measure/workload/workload.ts";

const workload = (name: string) => openWorkload(name, () => "");
const work = (name: string) => ({ workload: workload(name), promptTokens: 9, maxTokens: 50 });

Deno.test("requests take the workload's prompts in order, as many as arrive", () => {
  for (const name of ["fledgling:all", "phases", "random"]) {
    for (const requests of [0, 1, 7, 40]) {
      const made = requestsOf(closedLoop({ seed: 3, requests }), work(name), 5);
      equal(made.length, requests);
      ok(made.every(({ prompt }) => prompt !== undefined), name);
      deepEqual(made, requestsOf(closedLoop({ seed: 3, requests }), work(name), 5));
    }
  }
  const [a] = requestsOf(closedLoop({ seed: 3, requests: 1 }), work("fledgling:all"), 5);
  const [b] = requestsOf(closedLoop({ seed: 3, requests: 1 }), work("fledgling:all"), 6);
  notEqual(JSON.stringify(a?.prompt), JSON.stringify(b?.prompt));
});

Deno.test("phases stretch over all requests", () => {
  const made = requestsOf(closedLoop({ seed: 3, requests: 160 }), work("phases"), 5);
  const easy = made.map(({ prompt }) => prompt.group.startsWith("easy"));
  const changes = easy.filter((each, n) => n > 0 && each !== easy[n - 1]);
  deepEqual([changes.length, easy[0], easy[159]], [3, true, false]);
});

Deno.test("lengths: the trace's, else those asked for, else answers end by themselves", () => {
  const plain = closedLoop({ seed: 3, requests: 1 });
  const lengths = (of: ReturnType<typeof requestsOf>) =>
    of.map(({ promptTokens, maxTokens, ignoreEos }) => [promptTokens, maxTokens, ignoreEos]);
  deepEqual(lengths(requestsOf(plain, work("fledgling:all"), 1)), [[9, 50, false]]);
  const fixed = { ...work("fledgling:all"), outputTokens: 5 };
  deepEqual(lengths(requestsOf(plain, fixed, 1)), [[9, 5, true]]);
  const trace = traceCase(
    [{ atMs: 0, promptTokens: 400, outputTokens: 31, seed: 0 }, {
      atMs: 7,
      promptTokens: 4,
      outputTokens: 1,
      seed: 0,
    }],
    { name: "t", lengthScale: 0.1 },
  );
  deepEqual(lengths(requestsOf(trace.arrivals(1), fixed, 1)), [[40, 3, true], [1, 1, true]]);
  // Another block has other requests at the same times.
  const [one, two] = [trace.arrivals(1), trace.arrivals(2)];
  deepEqual(one.map(({ atMs }) => atMs), two.map(({ atMs }) => atMs));
  ok(one.every(({ seed }, n) => seed !== two[n]?.seed));
});

Deno.test("a case gives one list for a seed, whoever asks", () => {
  const one = rateCase(4, 0.5, { requests: 20 });
  deepEqual(one.arrivals(7), one.arrivals(7));
  notEqual(one.arrivals(7)[0]?.atMs, one.arrivals(8)[0]?.atMs);
});
