/**
 * Lets a thread that does not return to its event loop see that a message waits there: a count of
 * messages sent, in memory that both threads see. Looking at it costs less than a microsecond, a turn
 * of the event loop 1 to 2 ms.
 */
export interface Bell {
  /** Adds one to the count: after each message that was sent. */
  ring(): void;
}

export interface HeardBell {
  /** A message was sent that was not received yet. */
  rings(): boolean;
  /** A message was received. */
  heard(): void;
}

export function newBell(): { readonly memory: SharedArrayBuffer; readonly bell: Bell } {
  const memory = new SharedArrayBuffer(4);
  const count = new Int32Array(memory);
  return { memory, bell: { ring: () => void Atomics.add(count, 0, 1) } };
}

/** The receiving thread's side. */
export function heardBell(memory: SharedArrayBuffer): HeardBell {
  const count = new Int32Array(memory);
  let received = 0;
  return {
    // A message may be received before it is counted. The difference of counts that wrap around is right.
    rings: () => (Atomics.load(count, 0) - received | 0) > 0,
    heard: () => void received++,
  };
}
