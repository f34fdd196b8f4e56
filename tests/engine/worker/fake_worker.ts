// A worker that speaks as an engine's thread does, without an engine.
import type { EngineInfo, EngineStatus } from "../../../src/engine/engine.ts";
import {
  type ReceivedMessages,
  receivedMessages,
} from "../../../src/engine/worker/message_counter.ts";
import type { FromEngine } from "../../../src/engine/worker/messages.ts";
import { workerPort } from "../../../src/engine/worker/port.ts";

const port = workerPort();

function post(message: FromEngine): void {
  port?.postMessage(message);
}

if (port) {
  let pings = 0;
  /** How often "close" is answered; then the thread ends instead. */
  let closes = Infinity;
  let received: ReceivedMessages | undefined;
  port.onmessage = ({ data }) => {
    if (data.kind === "open") received = receivedMessages(data.sent);
    received?.count();
    if (data.kind === "open") {
      closes = data.options.limits?.maxBatch ?? Infinity;
      post({ kind: "progress", progress: { label: "weights", done: 1, total: 1 } });
      post({
        kind: "opened",
        info: { algorithm: "NONE" } as EngineInfo,
        status: {} as EngineStatus,
      });
    }
    // A request gets its first token and no end.
    if (data.kind === "submit") {
      const { logprobs: most } = data.request;
      const logprobs = [{ id: 7, logprob: -0.5, text: "so", top: [] }];
      const round = {
        kind: "round",
        ids: [7],
        accepted: 0,
        drafts: [],
        tier: undefined,
        ...most !== undefined && { logprobs },
      } as const;
      const events = [[data.id, round], [data.id, { kind: "text", text: "so" }]] as const;
      post({ kind: "events", events, status: undefined });
    }
    // Its status is whether it would look for messages.
    if (data.kind === "read status") {
      const value = { oneWaits: received?.oneWaits() } as unknown as EngineStatus;
      post({ kind: "status read", id: data.id, value });
    }
    if (data.kind === "close") {
      if (closes-- === 0) throw new Error("closed too often");
      post({ kind: "closed" });
    }
    // Every second ping is never answered.
    if (data.kind === "ping" && pings++ % 2 === 0) {
      post({ kind: "pong", id: data.id, value: undefined });
    }
  };
  post({ kind: "ready" });
}
