import type { FromEngine, ToEngine } from "./messages.ts";

/** A thread's side of its messages: the global object of a worker. */
export interface Port<Received = ToEngine, Sent = FromEngine> {
  onmessage: ((event: MessageEvent<Received>) => void) | null;
  postMessage(message: Sent): void;
  /** The worker's. */
  readonly name: string;
}

/** Undefined in a program's main thread. */
export function workerPort(): Port | undefined {
  const scope: unknown = Reflect.get(globalThis, "DedicatedWorkerGlobalScope");
  const inWorker = typeof scope === "function" && globalThis instanceof scope;
  return inWorker ? globalThis as unknown as Port : undefined;
}
