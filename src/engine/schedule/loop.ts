import { asError } from "../../errors.ts";
import { EventStream } from "./event_stream.ts";
import type { GenerateRequest } from "./events.ts";
import type { Job, Scheduler } from "./scheduler.ts";

/** Runs requests of any number of callers. One loop drives the device while there is work. */
export interface EngineLoop {
  /**
   * Submits the request and returns the stream of its events. If `Scheduler.submit` refuses the request, the UsageError
   * that it throws is the only event.
   */
  submit(request: GenerateRequest): EventStream;
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

  function submit(request: GenerateRequest): EventStream {
    let job: Job | undefined;
    const stream = new EventStream(() => job?.cancel());
    try {
      if (failure) throw failure;
      job = scheduler.submit(request, (event) => stream.push(event));
      submitted = true;
      if (!running) looping = loop();
    } catch (error) {
      stream.push({ kind: "error", error: asError(error) });
    }
    return stream;
  }

  /** A step must end before the next begins, so nothing else calls `step`. */
  async function loop(): Promise<void> {
    running = true;
    // Requests that are submitted in one turn of the event loop share the first step and a forward of their prompts.
    await undefined;
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

  /** The device's state after an error is not known, so nothing runs on it any more. */
  function fail(error: Error): void {
    failure ??= error;
    scheduler.fail(failure);
  }

  return {
    submit,
    idle: async () => await looping,
    close: () => fail(new Error("the engine is closed")),
  };
}
