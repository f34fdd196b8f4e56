import { setTimeout } from "node:timers/promises";
import { RemoteError } from "../../errors.ts";
import type { Answer, PreparedRequest } from "./request.ts";

/** A clock in milliseconds. */
export interface Clock {
  now(): number;
  /** Resolves after `ms` milliseconds, or when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The clock of this process. */
export const REAL_CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) => setTimeout(ms, undefined, { signal }).catch(() => {}),
};

/** A prepared request and when it is due. */
export interface DueRequest {
  readonly atMs: number;
  readonly prepared: PreparedRequest;
}

/** The times of a request, in milliseconds from the start, and its answer. */
export interface RequestRecord extends Answer {
  /** When the request arrived. Latencies count from here, however late it was sent. */
  readonly dueMs: number;
  /** When the request began to run; its end if it never ran. */
  readonly runsMs: number;
  /** When tokens were received, and how many. */
  readonly received: readonly { readonly atMs: number; readonly tokens: number }[];
  readonly endMs: number;
}

/** A request that a server refused or did not answer to its end, as `vllm bench serve` counts them. */
export interface FailedRequest extends Pick<RequestRecord, "dueMs" | "endMs"> {
  readonly error: RemoteError;
}

/** The requests of a run, each in the order of arrival. */
export interface Driven {
  readonly requests: readonly RequestRecord[];
  readonly failed: readonly FailedRequest[];
}

/** How requests are sent. */
export interface DriveOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The most requests in flight, a closed loop; absent for no limit, an open loop. */
  readonly concurrency?: number;
  /** Called whenever a request ends, with the number of requests that have ended. */
  readonly onEnded?: (ended: number) => void;
}

/**
 * Sends requests in their order when they are due, and waits for all answers. The latency of a request counts from when
 * it is due in an open loop (no coordinated omission), and from when a request may be sent in a closed loop.
 *
 * An engine may occupy this thread while it works. Requests that became due meanwhile are sent at the next report about
 * any request, before the engine goes on.
 *
 * @throws what a sender throws, once all requests have ended; a RemoteError only makes its own request a failed one.
 */
export async function drive(
  dues: readonly DueRequest[],
  { clock, signal, concurrency = Infinity, onEnded = () => {} }: DriveOptions,
): Promise<Driven> {
  const broken = new AbortController();
  const ends = AbortSignal.any([signal, broken.signal]);
  const start = clock.now();
  const since = () => clock.now() - start;
  const records: RequestRecord[] = [];
  const failed: FailedRequest[] = [];
  const sent: Promise<void>[] = [];
  let flying = 0;
  let sending = false;
  let ended = 0;
  let wake = () => {};

  async function run({ prepared }: DueRequest, index: number, dueMs: number): Promise<void> {
    const received: { atMs: number; tokens: number }[] = [];
    let runsMs: number | undefined;
    try {
      const answer = await prepared.send((tokens) => {
        const atMs = since();
        runsMs ??= atMs;
        if (tokens > 0) received.push({ atMs, tokens });
        sendDue();
      }, ends);
      const endMs = received.at(-1)?.atMs ?? since();
      records[index] = { ...answer, dueMs, runsMs: runsMs ?? endMs, received, endMs };
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      failed[index] = { error, dueMs, endMs: since() };
    }
    flying--;
    onEnded(++ended);
    // Sent at once, so that the new request can take part in the next step of an engine in this thread.
    sendDue();
    wake();
  }

  function sendDue(): void {
    // An engine may call back while it accepts a request; it must not be given another one meanwhile.
    if (sending) return;
    sending = true;
    while (sent.length < dues.length && flying < concurrency && !ends.aborted) {
      const due = dues[sent.length] as DueRequest;
      const now = since();
      if (due.atMs > now) break;
      flying++;
      const running = run(due, sent.length, concurrency === Infinity ? due.atMs : now);
      running.catch(() => broken.abort());
      sent.push(running);
    }
    sending = false;
  }

  const stopped = new Promise<void>((resolve) => {
    if (ends.aborted) resolve();
    ends.addEventListener("abort", () => resolve(), { once: true });
  });
  for (sendDue(); sent.length < dues.length && !ends.aborted; sendDue()) {
    const wait = (dues[sent.length]?.atMs ?? 0) - since();
    const place = new Promise<void>((resolve) => wake = resolve);
    if (flying >= concurrency) await Promise.race([place, stopped]);
    else if (wait > 0) await clock.sleep(wait, ends);
  }
  // Waits for all requests even if one failed, so that none is still running when the next run begins.
  const outcomes = await Promise.allSettled(sent);
  const fault = outcomes.find(({ status }) => status === "rejected");
  if (fault?.status === "rejected") throw fault.reason;
  // Without the holes that requests of the other kind leave.
  return { requests: records.flat(), failed: failed.flat() };
}
