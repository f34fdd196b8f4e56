import { CostError, parseCosts } from "../../speculate/costs/parse.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import type { RoundsPerSync } from "../../engine/schedule/sync_interval.ts";
import type { RecordedChain } from "../acceptance/replay.ts";

/** A request of a recorded run. */
export interface RecordedRequest {
  /** Time of its arrival, from the start. */
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Prompt tokens whose keys and values an earlier request had left; absent: 0. */
  readonly cachedTokens?: number;
}

/** A round of a recorded run. */
export interface RecordedRound {
  /** When it ended, from the start. */
  readonly tMs: number;
  /** Sequences that it returned tokens for. */
  readonly batch: number;
  readonly numSteps: number;
  /** Drafts accepted by each of them. */
  readonly accepted: readonly number[];
  readonly ms: number;
  /** Drafts verified for each of them; absent: numSteps. */
  readonly drafted?: readonly number[];
  /** Index of each sequence's request, from 0 in the order of the lines; absent: not known. */
  readonly requests?: readonly number[];
}

/** The engine that was recorded. */
export interface RecordedMachine {
  /** The policy in the syntax of `--policy`. */
  readonly policy: string;
  readonly maxBatch: number;
  readonly kvTokens: number;
  /** Tokens of a prompt between two rounds. */
  readonly prefillRows: number;
  /** The same while others decode too, and milliseconds between two tokens at most, where they were set. */
  readonly maxBatchedRows?: number | undefined;
  readonly sloItlMs?: number | undefined;
  readonly roundsPerSync: RoundsPerSync;
  /** What rounds cost there; null: not known. */
  readonly costs: CostTable | null;
}

/**
 * A run as it is recorded: a line of JSON for every request, `{"atMs", "promptTokens",
 * "outputTokens"}`, and for every round, `{"tMs", "batch", "numSteps", "accepted", "ms"}`, each kind
 * in the order of its times, and maybe first of all one for the machine, `{"policy", "maxBatch",
 * "kvTokens", "prefillRows", "maxBatchedRows", "sloItlMs", "roundsPerSync", "costs"}`.
 */
export interface Recording {
  readonly machine?: RecordedMachine;
  readonly requests: readonly RecordedRequest[];
  readonly rounds: readonly RecordedRound[];
}

/** The recording as `readRecording` takes it. */
export function recordingText({ machine, requests, rounds }: Recording): string {
  const lines = [
    ...machine ? [machine] : [],
    ...requests.map(({ atMs, promptTokens, outputTokens, cachedTokens }) => (
      { atMs, promptTokens, outputTokens, cachedTokens }
    )),
    ...rounds.map(({ tMs, batch, numSteps, accepted, ms, drafted, requests }) => (
      { tMs, batch, numSteps, accepted, ms, drafted, requests }
    )),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** A recording that cannot be used; callers turn it into a line for the user. */
export class RecordingError extends Error {
  override readonly name: string = "RecordingError";
}

/** @throws RecordingError with the number of the line that is wrong. */
export function readRecording(text: string): Recording {
  const requests: RecordedRequest[] = [];
  const rounds: RecordedRound[] = [];
  let machine: RecordedMachine | undefined;
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const fields = fieldsOf(line);
    if ("policy" in fields && machine === undefined) machine = machineOf(fields, at + 1);
    else if (isRequest(fields)) requests.push(fields);
    else if (isRound(fields)) rounds.push(fields);
    else throw new RecordingError(`line ${at + 1} is neither a request nor a round`);
  }
  if (requests.length === 0) throw new RecordingError("it has no requests");
  if (rounds.length === 0) throw new RecordingError("it has no rounds");
  const unknown = rounds.flatMap(({ requests = [] }) => requests)
    .find((request) => request >= requests.length);
  if (unknown !== undefined) throw new RecordingError(`its rounds have a request ${unknown}`);
  if (measuredMs({ requests, rounds }) <= 0) {
    throw new RecordingError("its last round ends before its first request arrives");
  }
  return { ...machine && { machine }, requests, rounds };
}

function machineOf(
  fields: { readonly [Key in keyof RecordedMachine]?: unknown },
  line: number,
): RecordedMachine {
  const { policy, maxBatch, kvTokens, prefillRows, roundsPerSync, costs } = fields;
  const { maxBatchedRows = 1, sloItlMs = 1 } = fields;
  const counts = [maxBatch, kvTokens, prefillRows, maxBatchedRows]
    .every((each) => isCount(each, 1));
  if (
    typeof policy !== "string" || !counts || !(isTime(sloItlMs) && sloItlMs > 0) ||
    roundsPerSync !== "auto" && !isCount(roundsPerSync, 1)
  ) throw new RecordingError(`line ${line} does not describe a machine`);
  return { ...fields as RecordedMachine, costs: costsOf(costs, line) };
}

function costsOf(costs: unknown, line: number): CostTable | null {
  if (costs === null || costs === undefined) return null;
  try {
    return parseCosts(costs);
  } catch (error) {
    if (!(error instanceof CostError)) throw error;
    const why = `the costs in line ${line} cannot be used: ${error.message}`;
    throw new RecordingError(why, { cause: error });
  }
}

function fieldsOf(line: string): object {
  try {
    const json: unknown = JSON.parse(line);
    return typeof json === "object" && json !== null ? json : {};
  } catch {
    return {};
  }
}

function isRequest(fields: Partial<RecordedRequest>): fields is RecordedRequest {
  const { atMs, promptTokens, outputTokens, cachedTokens = 0 } = fields;
  return isTime(atMs) && isCount(promptTokens, 1) && isCount(outputTokens, 1) &&
    isCount(cachedTokens, 0) && cachedTokens < promptTokens;
}

function isRound(fields: Partial<RecordedRound>): fields is RecordedRound {
  const { tMs, batch, numSteps, accepted, ms, drafted, requests } = fields;
  const listed = (list: unknown) =>
    list === undefined || Array.isArray(list) && list.length === accepted?.length &&
      list.every((each) => isCount(each, 0));
  return isTime(tMs) && isTime(ms) && isCount(batch, 1) && isCount(numSteps, 0) &&
    Array.isArray(accepted) && listed(drafted) && listed(requests) &&
    accepted.every((each, i) => isCount(each, 0) && each <= (drafted?.[i] ?? numSteps));
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}

function isCount(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= least;
}

/** Whether rounds name their requests. */
export function knowsRequests({ rounds }: Pick<Recording, "rounds">): boolean {
  return rounds.every(({ requests }) => requests !== undefined);
}

/**
 * The recorded chains of each request; if rounds do not name their requests, of each place in the batch, which
 * a request keeps while others end.
 */
export function streamsOf({ requests: { length }, rounds }: Recording): RecordedChain[][] {
  const known = knowsRequests({ rounds });
  const streams: RecordedChain[][] = known ? Array.from({ length }, () => []) : [];
  for (const { numSteps, accepted, drafted, requests } of rounds) {
    for (const [place, count] of accepted.entries()) {
      const at = (known ? requests?.[place] : undefined) ?? place;
      const stream = streams[at] ?? [];
      streams[at] = stream;
      stream.push({ drafted: drafted?.[place] ?? numSteps, accepted: count });
    }
  }
  return streams;
}

/** Tokens a second from the first request to the last round. */
export function measuredThroughput(recording: Recording): number {
  const tokens = recording.requests.reduce((sum, { outputTokens }) => sum + outputTokens, 0);
  return 1000 * tokens / measuredMs(recording);
}

function measuredMs({ requests, rounds }: Recording): number {
  const from = requests.reduce((first, { atMs }) => Math.min(first, atMs), Infinity);
  const to = rounds.reduce((last, { tMs }) => Math.max(last, tMs), 0);
  return to - from;
}
