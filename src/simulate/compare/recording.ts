import type { RecordedChain } from "../acceptance/replay.ts";

/** A request of a recorded run. */
export interface RecordedRequest {
  /** When it came, from the start. */
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** A round of a recorded run. */
export interface RecordedRound {
  /** When it ended, from the start. */
  readonly tMs: number;
  /** Sequences that it brought tokens for. */
  readonly batch: number;
  readonly numSteps: number;
  /** Drafts accepted by each of them. */
  readonly accepted: readonly number[];
  readonly ms: number;
}

/**
 * A run as it is recorded: a line of JSON for every request, `{"atMs", "promptTokens",
 * "outputTokens"}`, and for every round, `{"tMs", "batch", "numSteps", "accepted", "ms"}`, each kind
 * in the order of its times.
 */
export interface Recording {
  readonly requests: readonly RecordedRequest[];
  readonly rounds: readonly RecordedRound[];
}

/** The recording as `readRecording` takes it. */
export function recordingText({ requests, rounds }: Recording): string {
  const lines = [
    ...requests.map(({ atMs, promptTokens, outputTokens }) => ({
      atMs,
      promptTokens,
      outputTokens,
    })),
    ...rounds.map(({ tMs, batch, numSteps, accepted, ms }) => ({
      tMs,
      batch,
      numSteps,
      accepted,
      ms,
    })),
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
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const fields = fieldsOf(line);
    if (isRequest(fields)) requests.push(fields);
    else if (isRound(fields)) rounds.push(fields);
    else throw new RecordingError(`line ${at + 1} is neither a request nor a round`);
  }
  if (requests.length === 0) throw new RecordingError("it has no requests");
  if (rounds.length === 0) throw new RecordingError("it has no rounds");
  return { requests, rounds };
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
  const { atMs, promptTokens, outputTokens } = fields;
  return isTime(atMs) && isCount(promptTokens, 1) && isCount(outputTokens, 1);
}

function isRound(fields: Partial<RecordedRound>): fields is RecordedRound {
  const { tMs, batch, numSteps, accepted, ms } = fields;
  return isTime(tMs) && isTime(ms) && isCount(batch, 1) && isCount(numSteps, 0) &&
    Array.isArray(accepted) && accepted.every((each) => isCount(each, 0) && each <= numSteps);
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}

function isCount(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= least;
}

/** What the rounds did place by place of the batch: a request keeps its place while others end. */
export function streamsOf({ rounds }: Recording): RecordedChain[][] {
  const streams: RecordedChain[][] = [];
  for (const { numSteps, accepted } of rounds) {
    for (const [place, count] of accepted.entries()) {
      const stream = streams[place] ?? [];
      streams[place] = stream;
      stream.push({ drafted: numSteps, accepted: count });
    }
  }
  return streams;
}

/** Tokens a second from the first request to the last round. */
export function measuredThroughput({ requests, rounds }: Recording): number {
  const tokens = requests.reduce((sum, { outputTokens }) => sum + outputTokens, 0);
  const from = Math.min(...requests.map(({ atMs }) => atMs));
  const to = rounds.reduce((last, { tMs }) => Math.max(last, tMs), 0);
  return 1000 * tokens / (to - from);
}
