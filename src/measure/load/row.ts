import type { Subject } from "../runner.ts";
import { type Acceptance, acceptanceRate } from "../../remote/acceptance.ts";
import { prefillRate, prefillShare, prefillsOf } from "../prefills.ts";
import { sum } from "../statistics.ts";
import { type StepsByBatch, stepsByBatch } from "./choices.ts";
import { requestTimes } from "../request_times.ts";
import { type LatencyFields, latencyFields, meets, type Slo } from "./latency.ts";
import type { LoadCellSpec } from "./plan.ts";
import type { LoadCellResult, LoadRound } from "./session.ts";
import { type LoadTimeline, peak, timelineOf } from "./timeline.ts";

/** `mean_ttft_ms`, `p99_itl_ms`, ... */
type Fields<Name extends string> = {
  readonly [K in `${keyof LatencyFields}_${Name}_ms`]: number | null;
};

/**
 * The measurement of one policy under one load in one block, a public format. Fields that `vllm bench serve` or
 * SGLang's `bench_serving` have too have the same names. Lists are in the order of the arrivals.
 */
export interface LoadRow extends Fields<"ttft" | "tpot" | "itl" | "e2el" | "e2e_latency"> {
  /** What answered the requests: `eyrie` in this process, or the kind of the server, `vllm`. */
  readonly backend: string;
  /** The policy as it was given. */
  readonly label: string;
  readonly policy: string;
  /** True for the second measurement of the first policy. */
  readonly again: boolean;
  /** True if every round has the same number of draft steps. */
  readonly fixed: boolean;
  readonly model_id: string;
  readonly draft_id: string | null;
  readonly device: string;
  /** True if accepted counts were drawn at random rather than verified. */
  readonly simulated: boolean;
  readonly date: string;
  readonly workload: string;
  /** How requests arrived, in words. */
  readonly load: string;
  readonly block: number;
  readonly seed: number;
  readonly num_prompts: number;
  /** The requested rate per second; null if there is none or it changes. */
  readonly request_rate: number | null;
  readonly burstiness: number | null;
  readonly max_concurrency: number | null;
  /** The most requests that run at a time; null if a server does not say. */
  readonly max_batch: number | null;
  /** Size of the KV cache in tokens; null for a server. */
  readonly kv_tokens: number | null;
  /** Seconds from the start to the end of the last answer. */
  readonly duration: number;
  readonly completed: number;
  /** Requests that the server refused or did not answer to the end; the lists below have the others only. */
  readonly failed: number;
  /** Why they failed, in the order of arrival. */
  readonly errors: readonly string[];
  /** Null if a server does not count the tokens of prompts; so are the fields below that they are part of. */
  readonly total_input_tokens: number | null;
  readonly total_output_tokens: number;
  readonly request_throughput: number;
  /** Requests per second that met the objectives; null if there are none. */
  readonly request_goodput: number | null;
  readonly slo_ttft_ms: number | null;
  readonly slo_tpot_ms: number | null;
  readonly output_throughput: number;
  readonly total_token_throughput: number | null;
  /** Prompt tokens that were not in the prefix cache per second of prefill; null for a server. */
  readonly prefill_throughput: number | null;
  /** The share of `duration` that prefill took, 0 to 1; null for a server. */
  readonly prefill_time_share: number | null;
  /** Mean number of requests in flight. */
  readonly concurrency: number;
  readonly max_concurrent_requests: number;
  /** The most requests that had arrived and did not run yet; null for a server. */
  readonly peak_queue: number | null;
  /** Mean tokens that a sequence gains in a round; null if not known. */
  readonly accept_length: number | null;
  readonly spec_decode_num_drafts: number | null;
  /** Drafts that were verified. */
  readonly spec_decode_draft_tokens: number | null;
  readonly spec_decode_accepted_tokens: number | null;
  /** Per cent. */
  readonly spec_decode_acceptance_rate: number | null;
  /** Accept length of the rounds that verified drafts. */
  readonly spec_decode_acceptance_length: number | null;
  readonly rounds: number;
  readonly mean_num_steps: number | null;
  readonly num_steps_by_batch: StepsByBatch;
  readonly switches: number;
  readonly preemptions: number;
  readonly timeline: LoadTimeline;
  readonly input_lens: readonly (number | null)[];
  readonly output_lens: readonly number[];
  /** When each request arrived, in seconds from the start. */
  readonly start_times: readonly number[];
  /** Seconds from the arrival until each request ran. */
  readonly queue_times: readonly number[];
  /** Seconds from the arrival to the first token of each request. */
  readonly ttfts: readonly number[];
  readonly itls: readonly (readonly number[])[];
  readonly latencies: readonly number[];
  /** Hashes of the output ids. */
  readonly output_hashes: readonly string[];
}

/** What the rows of a run have in common. */
export interface RowContext {
  readonly subject: Subject;
  readonly backend: string;
  readonly workload: string;
  readonly maxBatch: number | null;
  readonly slo: Slo;
  readonly date: Date;
}

/** The row of one measurement. */
export function rowOf(
  { one, arm, block, seed }: LoadCellSpec,
  result: LoadCellResult,
  { subject, backend, workload, maxBatch, slo, date }: RowContext,
): LoadRow {
  const { requests, failed, rounds, seconds, acceptance } = result;
  const served = acceptance !== undefined;
  const prefills = result.prefills === undefined ? null : prefillsOf(result.prefills);
  const times = requests.map(requestTimes);
  const input = requests.map(({ promptTokens = null }) => promptTokens);
  const inputTokens = input.includes(null) ? null : sum(input.map((tokens) => tokens ?? 0));
  const output = requests.map(({ outputTokens }) => outputTokens);
  const good = times.filter((each) => meets(each, slo)).length;
  const hasSlo = slo.ttftMs !== undefined || slo.tpotMs !== undefined;
  return {
    backend,
    label: arm.label,
    policy: arm.policy.policy,
    again: arm.again,
    fixed: isFixed(arm),
    model_id: subject.model,
    draft_id: subject.draft ?? null,
    device: subject.device,
    simulated: subject.simulated,
    date: date.toISOString(),
    workload,
    load: one.name,
    block,
    seed,
    num_prompts: requests.length + failed.length,
    request_rate: one.requestRate,
    burstiness: one.burstiness,
    max_concurrency: one.concurrency,
    max_batch: maxBatch,
    kv_tokens: result.machine?.kvTokens ?? null,
    duration: seconds,
    completed: requests.length,
    failed: failed.length,
    errors: failed.map(({ error }) => error.message),
    total_input_tokens: inputTokens,
    total_output_tokens: sum(output),
    request_throughput: requests.length / seconds,
    request_goodput: hasSlo ? good / seconds : null,
    slo_ttft_ms: slo.ttftMs ?? null,
    slo_tpot_ms: slo.tpotMs ?? null,
    output_throughput: sum(output) / seconds,
    total_token_throughput: inputTokens === null ? null : (inputTokens + sum(output)) / seconds,
    prefill_throughput: prefills && prefillRate(prefills),
    prefill_time_share: prefills && prefillShare(prefills, seconds),
    ...named("ttft", times.map(({ ttft }) => ttft)),
    ...named("tpot", times.flatMap(({ tpot }) => tpot ?? [])),
    ...named("itl", times.flatMap(({ itl }) => itl)),
    ...named("e2el", times.map(({ e2el }) => e2el)),
    ...named("e2e_latency", times.map(({ e2el }) => e2el)),
    concurrency: sum(times.map(({ e2el }) => e2el)) / 1000 / seconds,
    max_concurrent_requests: peak(
      [...requests, ...failed].map(({ dueMs, endMs }) => [dueMs, endMs]),
    ),
    peak_queue: served ? null : peak(requests.map(({ dueMs, runsMs }) => [dueMs, runsMs])),
    ...served ? serverAcceptance(acceptance) : acceptanceOf(rounds),
    num_steps_by_batch: stepsByBatch(rounds),
    switches: result.switches,
    preemptions: result.preemptions,
    timeline: timelineOf(result),
    input_lens: input,
    output_lens: output,
    start_times: requests.map(({ dueMs }) => inSeconds(dueMs)),
    queue_times: requests.map(({ dueMs, runsMs }) => inSeconds(runsMs - dueMs)),
    ttfts: times.map(({ ttft }) => inSeconds(ttft)),
    itls: times.map(({ itl }) => itl.map(inSeconds)),
    latencies: times.map(({ e2el }) => inSeconds(e2el)),
    output_hashes: requests.map(({ outputHash }) => outputHash),
  };
}

/** Does the policy draft the same number of steps in every round? Regret is counted against these policies. */
function isFixed({ policy: { policy } }: LoadCellSpec["arm"]): boolean {
  return policy === "static" || policy === "off";
}

function named<Name extends string>(name: Name, values: readonly number[]) {
  const fields = Object.entries(latencyFields(values))
    .map(([field, value]) => [`${field}_${name}_ms`, value]);
  return Object.fromEntries(fields) as Fields<Name>;
}

/** Seconds rounded to the microsecond, because the lists are long. */
function inSeconds(ms: number): number {
  return Math.round(ms * 1000) / 1e6;
}

/** The acceptance that a server reports, in the same fields. */
function serverAcceptance(acceptance: Acceptance | null): AcceptanceFields {
  const { drafts, draftTokens, acceptedTokens, acceptLength } = acceptance ?? {};
  const rate = acceptance === null ? undefined : acceptanceRate(acceptance);
  return {
    accept_length: acceptLength ?? null,
    spec_decode_num_drafts: drafts ?? null,
    spec_decode_draft_tokens: draftTokens ?? null,
    spec_decode_accepted_tokens: acceptedTokens ?? null,
    spec_decode_acceptance_rate: rate === undefined ? null : rate * 100,
    spec_decode_acceptance_length: acceptLength ?? null,
    rounds: 0,
    mean_num_steps: null,
  };
}

type AcceptanceFields = Pick<
  LoadRow,
  | "accept_length"
  | "spec_decode_num_drafts"
  | "spec_decode_draft_tokens"
  | "spec_decode_accepted_tokens"
  | "spec_decode_acceptance_rate"
  | "spec_decode_acceptance_length"
  | "rounds"
  | "mean_num_steps"
>;

function acceptanceOf(rounds: readonly LoadRound[]): AcceptanceFields {
  // Of each round of each sequence, as the server counts on /metrics.
  const drafts = rounds.flatMap(({ drafts }) => drafts);
  const drafting = drafts.filter((verified) => verified > 0).length;
  const accepted = sum(rounds.flatMap(({ accepted }) => accepted));
  const verified = sum(drafts);
  return {
    accept_length: drafts.length === 0 ? null : 1 + accepted / drafts.length,
    spec_decode_num_drafts: drafting,
    spec_decode_draft_tokens: verified,
    spec_decode_accepted_tokens: accepted,
    spec_decode_acceptance_rate: verified === 0 ? null : accepted / verified * 100,
    spec_decode_acceptance_length: drafting === 0 ? null : 1 + accepted / drafting,
    rounds: rounds.length,
    mean_num_steps: rounds.length === 0
      ? null
      : sum(rounds.map(({ numSteps }) => numSteps)) / rounds.length,
  };
}
