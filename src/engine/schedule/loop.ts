import { asError } from "../../errors.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import { eventQueue } from "./event_queue.ts";
import type { Job, Scheduler } from "./scheduler.ts";

/** Runs requests of any number of callers. One loop drives the device while there is work. */
export interface EngineLoop {
  /**
   * Submits the request when the iteration begins and yields its events; the last one is "finish".
   * Leaving the iteration ends the request and waits until its slot and pages are free.
   *
   * @throws UsageError as Scheduler.submit, and for logits that are no numbers.
   */
  generate(request: GenerateRequest): AsyncGenerator<EngineEvent, void, void>;
  /**
   * As `generate`, for who takes the events as they happen: the last one is "finish" or "error".
   *
   * @throws UsageError as Scheduler.submit.
   */
  submit(request: GenerateRequest, onEvent: (event: EngineEvent) => void): Job;
  /** Resolves once no request is in flight. */
  idle(): Promise<void>;
  /** Ends all requests with an error and takes no more. */
  close(): void;
}

export function engineLoop(scheduler: Scheduler): EngineLoop {
  let looping: Promise<void> | undefined;
  let running = false;
  /** Something was submitted since the last step began. */
  let submitted = false;
  let failure: Error | undefined;

  function submit(request: GenerateRequest, onEvent: (event: EngineEvent) => void): Job {
    if (failure) throw failure;
    const job = scheduler.submit(request, onEvent);
    submitted = true;
    // A step's events may submit before `loop` has returned its promise.
    if (!running) looping = loop();
    return job;
  }

  /** A step must end before the next begins, so nobody else calls `step`. */
  async function loop(): Promise<void> {
    running = true;
    try {
      while (submitted && failure === undefined) {
        submitted = false;
        while (failure === undefined && await scheduler.step());
      }
    } catch (error) {
      fail(asError(error));
    }
    running = false;
  }

  /** What the device is in after an error is not known: nothing runs on it any more. */
  function fail(error: Error): void {
    failure ??= error;
    scheduler.fail(failure);
  }

  return {
    submit,
    async *generate(request) {
      const events = eventQueue<EngineEvent>();
      const job = submit(request, events.push);
      try {
        while (true) {
          const event = await events.next();
          if (event.kind === "error") throw event.error;
          yield event;
          if (event.kind === "finish") return;
        }
      } finally {
        job.cancel();
        while (!job.done) await events.next();
      }
    },
    idle: async () => await looping,
    close: () => fail(new Error("the engine is closed")),
  };
}
