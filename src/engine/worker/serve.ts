import type { LocalEngine } from "../open.ts";
import type { EventStream } from "../schedule/event_stream.ts";
import type { EngineEvent } from "../schedule/events.ts";
import { receivedMessages } from "./message_counter.ts";
import { sentError } from "./errors.ts";
import type { FromEngine, SentEvent, ToEngine } from "./messages.ts";
import type { Port } from "./port.ts";

/** Runs one engine for the thread at the other end, from its "open" on. */
export function serveEngine(port: Port): void {
  const post = (message: FromEngine) => port.postMessage(message);
  port.onmessage = async ({ data }) => {
    if (data.kind !== "open") throw new Error(`"${data.kind}" before "open"`);
    const received = receivedMessages(data.sent);
    received.count();
    try {
      const { openEngine } = await import("../open.ts");
      const engine = await openEngine({
        ...data.options,
        hooks: {
          messageWaits: received.oneWaits,
          onProgress: (progress) => post({ kind: "progress", progress }),
          onWarning: (line) => post({ kind: "warning", line }),
        },
      });
      const answer = answers(engine, post);
      port.onmessage = (event) => {
        received.count();
        answer(event.data);
      };
      post({ kind: "opened", info: engine.info, status: engine.status });
    } catch (error) {
      post({ kind: "not opened", error: sentError(error) });
    }
  };
  post({ kind: "ready" });
}

/** Returns a function that handles each message of the client. */
function answers(
  engine: LocalEngine,
  post: (message: FromEngine) => void,
): (message: ToEngine) => void {
  const streams = new Map<number, EventStream>();
  const { send, flush } = outbox((events) => {
    const ended = events.some(([, { kind }]) => kind === "finish");
    post({ kind: "events", events, status: ended ? engine.status : undefined });
  });

  function onEvent(id: number, event: EngineEvent): void {
    if (event.kind === "finish" || event.kind === "error") streams.delete(id);
    if (event.kind !== "error") return send([id, event]);
    flush(); // the request is forgotten with its error, so what came before goes first
    post({ kind: "error", id, error: sentError(event.error) });
  }

  function act(message: ToEngine): void {
    switch (message.kind) {
      case "open":
        throw new Error("the engine is open already");
      case "read status":
        return post({ kind: "status read", id: message.id, value: engine.status });
      case "ping":
        return post({ kind: "pong", id: message.id, value: undefined });
      case "submit": {
        const { id, request } = message;
        const stream = engine.submit(request);
        streams.set(id, stream);
        return stream.listen((event) => onEvent(id, event));
      }
      case "cancel":
        return streams.get(message.id)?.cancel();
      case "close":
        for (const stream of streams.values()) stream.cancel();
        // The device is left as it is: the process ends now.
        return void engine.idle().then(() => {
          engine.costs.keep();
          post({ kind: "closed" });
        });
    }
  }

  return (message) => {
    try {
      act(message);
    } catch (error) {
      if (message.kind === "open" || message.kind === "close") throw error;
      post({ kind: "error", id: message.id, error: sentError(error) });
    }
  };
}

/** Events on their way to the caller. */
interface Outbox {
  send(event: SentEvent): void;
  /** Posts what was sent at once. */
  flush(): void;
}

/** Posts the events of one step together: they are received without a turn of the event loop between them. */
function outbox(post: (events: readonly SentEvent[]) => void): Outbox {
  let events: SentEvent[] = [];
  const flush = () => {
    if (events.length > 0) post(events);
    events = [];
  };
  return {
    flush,
    send(event) {
      if (events.length === 0) queueMicrotask(flush);
      events.push(event);
    },
  };
}
