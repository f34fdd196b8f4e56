/**
 * Lets a thread that does not return to its event loop see that a message waits there: a count of
 * messages sent, in memory that both threads see. Looking at it costs less than a microsecond, a turn
 * of the event loop 1 to 2 ms.
 */
export interface SentMessages {
  readonly memory: SharedArrayBuffer;
  /** To be called after each message that was sent. */
  count(): void;
}

/** The receiving thread's side. */
export interface ReceivedMessages {
  /** Whether a message was sent that was not received yet. */
  oneWaits(): boolean;
  /** To be called for each message that was received. */
  count(): void;
}

export function sentMessages(): SentMessages {
  const memory = new SharedArrayBuffer(4);
  const sent = new Int32Array(memory);
  return { memory, count: () => void Atomics.add(sent, 0, 1) };
}

/** @param memory that of the sender. */
export function receivedMessages(memory: SharedArrayBuffer): ReceivedMessages {
  const sent = new Int32Array(memory);
  let received = 0;
  return {
    // A message may be received before it is counted. The difference of counts that wrap around is right.
    oneWaits: () => (Atomics.load(sent, 0) - received | 0) > 0,
    count: () => void received++,
  };
}
