/** Hands events from one writer to one reader, in order. */
export interface EventQueue<Event> {
  push(event: Event): void;
  /** The next event; waits for it where there is none yet. */
  next(): Promise<Event>;
}

export function eventQueue<Event>(): EventQueue<Event> {
  const events: Event[] = [];
  let first = 0;
  let wake: ((event: Event) => void) | undefined;
  return {
    push(event) {
      const waiting = wake;
      wake = undefined;
      if (waiting) waiting(event);
      else events.push(event);
    },
    next() {
      if (first === events.length) return new Promise((resolve) => wake = resolve);
      const event = events[first++] as Event;
      if (first === events.length) events.length = first = 0;
      return Promise.resolve(event);
    },
  };
}
