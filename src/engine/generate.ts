import type { Slot } from "./slot.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import type { Scheduler } from "./scheduler.ts";

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
  try {
    while (!job.done) {
      await scheduler.step();
      for (const event of events.splice(0)) {
        if (event.kind === "error") throw event.error;
        yield event;
      }
    }
  } finally {
    if (!job.done) {
      job.cancel();
      await scheduler.step();
    }
  }
}
