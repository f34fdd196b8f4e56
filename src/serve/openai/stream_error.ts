import { asApiError, errorBody } from "../http/errors.ts";
import type { StreamEvent } from "../http/sse.ts";

/** Passes the events on. An error becomes the last event, because the status has been sent already. */
export async function* streamError(
  events: AsyncGenerator<StreamEvent, void, void>,
  { leave }: { readonly leave: () => void },
): AsyncGenerator<StreamEvent, void, void> {
  try {
    yield* events;
  } catch (error) {
    leave();
    yield { data: errorBody(asApiError(error)) };
  }
}
