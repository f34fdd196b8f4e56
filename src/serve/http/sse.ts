/** One event of a stream. */
export interface StreamEvent {
  /** Anthropic's streams and those of Responses name their events. */
  readonly event?: string;
  /** Sent as JSON, a text as it is. */
  readonly data: unknown;
}

const UTF8 = new TextEncoder();

/** A client that reads nothing for this long, although there is data, counts as gone. */
const UNREAD_MS = 300_000;

/** A silent stream sends a comment at this interval, ms, so that clients and proxies keep the connection. */
const SILENCE_MS = 10_000;

/** `text/event-stream`. The next event is generated only when the client has read the ones before it. */
export function eventStream(events: AsyncGenerator<StreamEvent>, leave: () => void): Response {
  return streamed(events, leave, {
    type: "text/event-stream; charset=utf-8",
    comment: ": waiting\n\n",
    text: ({ event, data }) => {
      const json = typeof data === "string" ? data : JSON.stringify(data);
      return `${event === undefined ? "" : `event: ${event}\n`}data: ${json}\n\n`;
    },
  });
}

/** `application/x-ndjson`, a JSON value a line: ollama's streams. */
export function lineStream(values: AsyncGenerator<unknown>, leave: () => void): Response {
  return streamed(values, leave, {
    type: "application/x-ndjson",
    text: (value) => `${JSON.stringify(value)}\n`,
  });
}

/** @param leave called where the client goes before the end. */
function streamed<T>(
  values: AsyncGenerator<T>,
  leave: () => void,
  { type, text, comment }: {
    readonly type: string;
    readonly text: (value: T) => string;
    /** What is sent while there is nothing to send; absent: nothing. */
    readonly comment?: string;
  },
): Response {
  let unread: ReturnType<typeof setTimeout> | undefined;
  let pending: Promise<IteratorResult<T>> | undefined;
  const end = () => {
    clearTimeout(unread);
    leave();
    values.return(undefined).catch(() => {});
  };
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      clearTimeout(unread);
      pending ??= values.next();
      const next = comment === undefined ? await pending : await unlessSilent(pending);
      if (next?.done) return controller.close();
      if (next) pending = undefined;
      const piece = next ? text(next.value) : comment ?? "";
      unread = setTimeout(() => {
        controller.error(unreadError());
        end();
      }, UNREAD_MS);
      // If the client has gone, this calls `cancel`, which clears the timer.
      try {
        controller.enqueue(UTF8.encode(piece));
      } catch {
        end();
      }
    },
    cancel: end,
  }, { highWaterMark: 0 });
  return new Response(body, {
    headers: { "content-type": type, "cache-control": "no-cache", "x-accel-buffering": "no" },
  });
}

/** The value, or undefined where none has come for `SILENCE_MS`. */
async function unlessSilent<T>(value: Promise<T>): Promise<T | undefined> {
  const { promise: silent, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), SILENCE_MS);
  try {
    return await Promise.race([value, silent]);
  } finally {
    clearTimeout(timer);
  }
}

/** The listener writes an error's stack to stderr: the stack is cut to one line here. */
function unreadError(): Error {
  const error = new Error(`a client read nothing of its answer for ${UNREAD_MS / 60_000} minutes`);
  error.stack = error.message;
  return error;
}
