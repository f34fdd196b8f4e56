import { setTimeout } from "node:timers/promises";
import type { Slot } from "./slot.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import type { Scheduler } from "./scheduler.ts";

/** Timers and signals wait while the GPU is read; a turn costs 2 ms, so not each round. */
const TURN_MS = 100;

/**
 * Runs one request in a slot of its own and yields its events. Stopping early cancels it.
 *
 * @throws UsageError as Scheduler.submit, and for logits that are no numbers.
 */
export async function* generate(
  scheduler: Scheduler,
  slot: Slot,
  request: GenerateRequest,
): AsyncGenerator<EngineEvent> {
  const events: EngineEvent[] = [];
  const job = scheduler.submit(request, { slot, onEvent: (event) => events.push(event) });
  const turn = turns();
  try {
    while (!job.done) {
      await scheduler.step();
      for (const event of events.splice(0)) {
        if (event.kind === "error") throw event.error;
        yield event;
      }
      await turn();
    }
  } finally {
    if (!job.done) {
      job.cancel();
      await scheduler.step();
    }
  }
}

/** Gives timers and signals a turn, at once and then every TURN_MS. */
export function turns(): () => Promise<void> {
  let last = -Infinity;
  return async () => {
    if (performance.now() - last < TURN_MS) return;
    // setImmediate would come back before Deno has heard a signal.
    await setTimeout(1);
    last = performance.now();
  };
}
