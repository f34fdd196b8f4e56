import type { FromEngine, ToEngine } from "./messages.ts";

/** The engine's side of its messages: the global object of a worker. */
export interface Port {
  onmessage: ((event: MessageEvent<ToEngine>) => void) | null;
  postMessage(message: FromEngine): void;
}

/** Undefined in a program's main thread. */
export function workerPort(): Port | undefined {
  const scope: unknown = Reflect.get(globalThis, "DedicatedWorkerGlobalScope");
  const inWorker = typeof scope === "function" && globalThis instanceof scope;
  return inWorker ? globalThis as unknown as Port : undefined;
}
