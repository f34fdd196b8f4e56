import { reason, RemoteError } from "../../errors.ts";
import { drive, type Driven, REAL_CLOCK } from "./drive.ts";
import type { LoadCellSpec, LoadPlan } from "./plan.ts";
import { type LoadRequest, type RequestSender, requestsOf } from "./request.ts";

/** The seed of the warm-up requests; no request of a block has it. */
const WARM = 0x3a7;

/** A measurement that runs. */
export interface LoadCell {
  readonly spec: LoadCellSpec;
  readonly plan: LoadPlan;
  readonly signal: AbortSignal;
  readonly onEnded: (ended: number) => void;
}

/** The requests of a measurement, and the seconds to the end of the last one. */
export interface DrivenCell extends Driven {
  readonly seconds: number;
}

/**
 * Sends the warm-up requests, all at once, then those of the measurement when they are due.
 *
 * @param onWarm called between the two, before the measured time begins.
 * @returns undefined if the signal aborted before the last answer.
 * @throws RemoteError where not one request of the two is answered.
 */
export async function driveCell(
  { spec: { one, block, seed }, plan: { work, warmup }, signal, onEnded }: LoadCell,
  sender: RequestSender,
  onWarm: () => Promise<void> | void,
): Promise<DrivenCell | undefined> {
  const clock = REAL_CLOCK;
  const prepared = (requests: readonly LoadRequest[]) =>
    requests.map((each) => ({ atMs: each.atMs, prepared: sender.prepare(each) }));
  const early = Array.from({ length: warmup }, (_, n) => ({ atMs: 0, seed: n }));
  const dues = prepared(requestsOf(block < 0 ? [] : one.arrivals(seed), work, seed));
  const warm = prepared(requestsOf(early, work, (seed ^ WARM) >>> 0));
  refuseUnanswered(one.name, await drive(warm, { clock, signal }));
  await onWarm();
  const start = clock.now();
  const driven = await drive(dues, {
    clock,
    signal,
    onEnded,
    ...one.concurrency === null ? {} : { concurrency: one.concurrency },
  });
  const seconds = (clock.now() - start) / 1000;
  const ended = driven.requests.length + driven.failed.length;
  if (signal.aborted || ended < dues.length) return undefined;
  refuseUnanswered(one.name, driven);
  return { ...driven, seconds };
}

function refuseUnanswered(load: string, { requests, failed: [first] }: Driven): void {
  if (first === undefined || requests.length > 0) return;
  throw new RemoteError(
    `Cannot measure "${load}": no request was answered; the first: ${reason(first.error)}`,
  );
}
