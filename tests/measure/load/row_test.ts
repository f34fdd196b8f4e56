import { deepEqual, equal, ok } from "node:assert/strict";
import { addedSteps, batchRanges, stepsByBatch } from "../../../src/measure/load/choices.ts";
import type { RequestRecord } from "../../../src/measure/load/drive.ts";
import { latencyFields, meets } from "../../../src/measure/load/latency.ts";
import { requestTimes } from "../../../src/measure/request_times.ts";
import { closedCase, loadArms } from "../../../src/measure/load/plan.ts";
import { rowOf } from "../../../src/measure/load/row.ts";
import type { LoadCellResult, LoadRound } from "../../../src/measure/load/session.ts";
import { peak, timelineOf } from "../../../src/measure/load/timeline.ts";
import { SUBJECT } from "../fake.ts";

/** Tokens at 30, 30 + 2 at 50, 1 at 60. */
const FIRST = record(10, 20, [[30, 1], [50, 3], [60, 1]]);
const SECOND = record(15, 60, [[70, 1]]);

function record(
  dueMs: number,
  runsMs: number,
  received: readonly (readonly [number, number])[],
): RequestRecord {
  const outputTokens = received.reduce((sum, [, tokens]) => sum + tokens, 0);
  return {
    dueMs,
    runsMs,
    endMs: received.at(-1)?.[0] ?? 0,
    received: received.map(([atMs, tokens]) => ({ atMs, tokens })),
    promptTokens: 7,
    outputTokens,
    outputHash: "h",
    complete: true,
  };
}

function round(beganMs: number, ms: number, numSteps: number, accepted: number[]): LoadRound {
  const drafts = accepted.map(() => numSteps);
  const requests = [...accepted.keys()];
  const batch = accepted.length;
  return {
    beganMs,
    ms,
    numSteps,
    together: 1,
    batch,
    requests,
    drafts,
    accepted,
  };
}

const RESULT: LoadCellResult = {
  requests: [FIRST, SECOND],
  failed: [],
  rounds: [round(30, 20, 3, [2]), round(50, 10, 0, [0]), round(60, 10, 1, [1, 0])],
  seconds: 0.1,
  switches: 1,
  preemptions: 0,
};

Deno.test("times of a request count from its arrival; tokens of a round come at once", () => {
  deepEqual(requestTimes(FIRST), { ttft: 20, tpot: 30 / 4, itl: [20, 0, 0, 10], e2el: 50 });
  deepEqual(requestTimes(SECOND), { ttft: 55, tpot: null, itl: [], e2el: 55 });
});

Deno.test("objectives: all that are given, the time per token of a single one is 0", () => {
  const [first, second] = [requestTimes(FIRST), requestTimes(SECOND)];
  ok(meets(first, {}) && meets(first, { ttftMs: 20, tpotMs: 7.5 }));
  ok(!meets(first, { ttftMs: 19.9 }) && !meets(first, { ttftMs: 20, tpotMs: 7.4 }));
  ok(meets(second, { tpotMs: 0.1 }) && !meets(second, { ttftMs: 54, tpotMs: 1 }));
});

Deno.test("fields of a list of times are numpy's", () => {
  deepEqual(latencyFields([4, 1, 3, 2]), {
    mean: 2.5,
    median: 2.5,
    std: Math.sqrt(1.25),
    p50: 2.5,
    p90: 3.7,
    p99: 3.9699999999999998,
  });
  deepEqual(new Set(Object.values(latencyFields([]))), new Set([null]));
});

Deno.test("a row has the throughput and the share of prefill, and the size of the KV cache; of a server they are not known", () => {
  const spec = { one: closedCase(2, 2), arm: ARM as NonNullable<typeof ARM>, block: 1, seed: 5 };
  const facts = { subject: SUBJECT, backend: "eyrie", workload: "w", maxBatch: 4, slo: {} };
  const prefills = [{ chunks: [{ from: 0, to: 6 }], rows: 6, ms: 20 }, {
    chunks: [{ from: 6, to: 9 }],
    rows: 3,
    ms: 10,
  }];
  const machine = { maxBatch: 4, kvTokens: 640, prefillRows: 64, roundsPerSync: 1, costs: null };
  const fields = (result: LoadCellResult) => {
    const row = rowOf(spec, result, { ...facts, date: new Date(0) });
    return [row.prefill_throughput, row.prefill_time_share, row.kv_tokens];
  };
  deepEqual(fields({ ...RESULT, prefills, machine }), [300, 0.3, 640]);
  deepEqual(fields({ ...RESULT, acceptance: null }), [null, null, null]);
});

const [ARM] = loadArms([{ label: "off", policy: { policy: "static", options: {} } }]);

Deno.test("a row has the names of vLLM and SGLang, and their units", () => {
  const spec = { one: closedCase(2, 2), arm: ARM as NonNullable<typeof ARM>, block: 1, seed: 5 };
  const row = rowOf(spec, RESULT, {
    subject: SUBJECT,
    backend: "eyrie",
    workload: "w",
    maxBatch: 4,
    slo: { ttftMs: 30 },
    date: new Date(0),
  });
  // vllm/benchmarks/serve.py and sglang/bench_serving.py: what their plot scripts read.
  const names = [
    ...["date", "backend", "label", "model_id", "num_prompts", "request_rate", "burstiness"],
    ...["max_concurrency", "duration", "completed", "total_input_tokens", "total_output_tokens"],
    ...["request_throughput", "request_goodput", "output_throughput", "total_token_throughput"],
    ...["input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times"],
    ...["max_concurrent_requests", "concurrency", "accept_length"],
    ...["spec_decode_acceptance_rate", "spec_decode_acceptance_length"],
    ...["spec_decode_num_drafts", "spec_decode_draft_tokens", "spec_decode_accepted_tokens"],
    ...["ttft", "tpot", "itl", "e2el", "e2e_latency"].flatMap((of) =>
      ["mean", "median", "std", "p90", "p99"].map((field) => `${field}_${of}_ms`)
    ),
  ];
  deepEqual(names.filter((name) => !(name in row)), []);
  deepEqual([row.duration, row.completed, row.request_throughput], [0.1, 2, 20]);
  deepEqual([row.total_input_tokens, row.total_output_tokens], [14, 6]);
  deepEqual([row.output_throughput, row.total_token_throughput], [60, 200]);
  deepEqual([row.request_goodput, row.slo_ttft_ms, row.slo_tpot_ms], [10, 30, null]);
  deepEqual([row.mean_ttft_ms, row.mean_e2el_ms, row.mean_tpot_ms], [37.5, 52.5, 7.5]);
  equal(row.mean_e2e_latency_ms, row.mean_e2el_ms);
  deepEqual([row.ttfts, row.latencies, row.start_times], [
    [0.02, 0.055],
    [0.05, 0.055],
    [0.01, 0.015],
  ]);
  deepEqual([row.queue_times, row.itls], [[0.01, 0.045], [[0.02, 0, 0, 0.01], []]]);
  ok(Math.abs(row.concurrency - 1.05) < 1e-12);
  deepEqual([row.max_concurrent_requests, row.peak_queue], [2, 2]);
  deepEqual([row.accept_length, row.spec_decode_acceptance_length], [1.75, 2]);
  deepEqual([row.spec_decode_num_drafts, row.spec_decode_draft_tokens], [3, 5]);
  equal(row.spec_decode_acceptance_rate, 60);
  deepEqual(row.num_steps_by_batch, { "1": { "3": 1, "0": 1 }, "2": { "1": 1 } });
  deepEqual([row.max_concurrency, row.request_rate, row.block], [2, null, 1]);
  deepEqual([row.fixed, row.again, row.switches], [true, false, 1]);
  equal(JSON.stringify(row).includes("NaN"), false);
});

Deno.test("only drafts that were verified are counted, as the server counts them", () => {
  const spec = { one: closedCase(2, 2), arm: ARM as NonNullable<typeof ARM>, block: 1, seed: 5 };
  const facts = { subject: SUBJECT, backend: "eyrie", workload: "w", maxBatch: 4, slo: {} };
  const rounds = [{ ...round(60, 10, 3, [1, 0, 2]), drafts: [1, 0, 3] }];
  const row = rowOf(spec, { ...RESULT, rounds }, { ...facts, date: new Date(0) });
  deepEqual([row.spec_decode_num_drafts, row.spec_decode_draft_tokens], [2, 4]);
  deepEqual([row.spec_decode_acceptance_rate, row.spec_decode_acceptance_length], [75, 2.5]);
});

Deno.test("without rounds, as of a server, nothing is made up", () => {
  const spec = { one: closedCase(2, 2), arm: ARM as NonNullable<typeof ARM>, block: 0, seed: 5 };
  const row = rowOf(spec, { ...RESULT, rounds: [] }, {
    subject: SUBJECT,
    backend: "eyrie",
    workload: "w",
    maxBatch: 4,
    slo: {},
    date: new Date(0),
  });
  deepEqual([row.accept_length, row.mean_num_steps, row.request_goodput], [null, null, null]);
  ok([...row.timeline.batch, ...row.timeline.num_steps].every((each) => each === null));
});

Deno.test("a timeline adds up: arrivals, tokens, waiting, and rounds by their time", () => {
  const { width_ms: width, ...lists } = timelineOf(RESULT);
  const total = (list: readonly (number | null)[]) =>
    list.reduce<number>((sum, each) => sum + (each ?? 0), 0) * width / 1000;
  ok(Math.abs(total(lists.arrival_rate) - 2) < 1e-9);
  ok(Math.abs(total(lists.output_throughput) - 6) < 1e-9);
  // 10 ms and 45 ms.
  ok(Math.abs(total(lists.queue) - 0.055) < 1e-9);
  equal(width, 5);
  const at = (index: number) => [lists.batch[index], lists.num_steps[index]];
  deepEqual([5, 6, 9, 10, 11].map(at), [[0, null], [1, 3], [1, 3], [1, 0], [1, 0]]);
  deepEqual([12, 13, 14].map(at), [[2, 1], [2, 1], [0, null]]);
  const half = timelineOf({
    ...RESULT,
    rounds: [round(32.5, 10, 3, [0]), round(42.5, 10, 1, [0, 0])],
  });
  deepEqual([half.batch[8], half.num_steps[8]], [1.5, 2]);
});

Deno.test("the most at once: who leaves makes place for who comes at that moment", () => {
  equal(peak([]), 0);
  equal(peak([[0, 10], [5, 15], [10, 20]]), 2);
  equal(peak([[0, 10], [5, 15], [9, 20], [30, 40]]), 3);
});

Deno.test("steps by batch size are counted, added and grouped by powers of 2", () => {
  const counts = stepsByBatch(RESULT.rounds);
  const both = addedSteps([counts, counts, { "3": { "7": 2 }, "4": { "1": 1 }, "9": { "0": 5 } }]);
  deepEqual(both["1"], { "3": 2, "0": 2 });
  deepEqual(batchRanges(both), [
    { name: "1", rounds: 4, meanSteps: 1.5 },
    { name: "2", rounds: 2, meanSteps: 1 },
    { name: "3-4", rounds: 3, meanSteps: 5 },
    { name: "9-16", rounds: 5, meanSteps: 0 },
  ]);
});
