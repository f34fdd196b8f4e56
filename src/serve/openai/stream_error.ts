import type { Choices } from "../answers/choices.ts";
import { errorBody } from "../http/errors.ts";
import type { StreamEvent } from "../http/sse.ts";

/** Passes the events on. An error becomes the last event, because the status has been sent already. */
export async function* streamError(
  events: AsyncGenerator<StreamEvent, void, void>,
  { failed }: Pick<Choices, "failed">,
): AsyncGenerator<StreamEvent, void, void> {
  try {
    yield* events;
  } catch (error) {
    yield { data: errorBody(failed(error)) };
  }
}
