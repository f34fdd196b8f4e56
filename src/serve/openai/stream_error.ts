import { asApiError, errorBody } from "../http/errors.ts";
import type { StreamEvent } from "../http/sse.ts";

/** The events, and where they end with an error that as the last: the status is long sent. */
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
