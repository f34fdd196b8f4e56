import { reason, UsageError } from "../errors.ts";
import type { Engine } from "../engine/engine.ts";
import type { LoadProgress } from "../engine/load/load.ts";
import { openApp, refused } from "./app.ts";
import { type ConnectionLimits, listen, type Listener, type Unread } from "./http/listener.ts";
import type { LiveRequest } from "./service/table.ts";
import { idHeaders, newRequestId } from "./service/trace.ts";
import { openService, type Service, type ServiceOptions, setReady } from "./service/service.ts";

export interface ServerOptions extends ServiceOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** How long requests are still accepted after stop() was called, while /health reports the stop. */
  readonly drainDelayMs: number;
  /** How long requests may still run after that. */
  readonly drainMs: number;
  readonly limits: ConnectionLimits;
}

export interface Server {
  readonly url: string;
  readonly service: Service;
  /** Resolves once requests are answered. @throws what opening the engine threw. */
  readonly ready: Promise<Engine | undefined>;
  /**
   * Makes /health report the stop and accepts requests for `drainDelayMs` more. Then new requests get 503,
   * running ones are ended after `drainMs`, and all connections are closed. Resolves when no connection is
   * open any more; the engine stays open.
   */
  stop(): Promise<void>;
}

/**
 * Listens at once and answers 503 until the engine is open.
 *
 * @param open gets a listener of its progress; undefined where it was interrupted.
 * @throws UsageError where nobody can listen there.
 */
export async function startServer(
  open: (onProgress: (progress: LoadProgress) => void) => Promise<Engine | undefined>,
  options: ServerOptions,
): Promise<Server> {
  const service = openService(options);
  const http = await listening(service, options);
  const stalls = setInterval(stallWatch(service), STALL_CHECK_MS);
  const pings = setInterval(() => {
    if (service.phase.kind === "ready") service.phase.ready.heartbeat.ask();
  }, Math.min(PING_MS, options.roundMs / 4));
  const { hostname, port } = http;
  const ready = opened(service, open);
  return {
    url: `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`,
    service,
    ready,
    async stop() {
      service.draining = true;
      if (options.drainDelayMs > 0) await pause(options.drainDelayMs);
      service.stopping = true;
      await drained(service, options.drainMs);
      const closed = http.close();
      // Connections that are still open after CLOSE_MS belong to clients that do not read.
      const ending = setTimeout(http.end, CLOSE_MS);
      await closed;
      clearTimeout(ending);
      clearInterval(stalls);
      clearInterval(pings);
    },
  };
}

/** How long an answer that is whole may take to reach its client once the server stops. */
const CLOSE_MS = 1000;

/** How often the engine's thread is asked for a sign of life, ms. */
const PING_MS = 5000;

/** How often requests are looked at for stalls, ms. */
const STALL_CHECK_MS = 1000;

/** Writes each request that has a slot to the log, once it has stood still for `stallMs`. */
function stallWatch({ table, log, options: { stallMs } }: Service): () => void {
  const stalled = new WeakMap<LiveRequest, number>();
  return () => {
    const now = performance.now();
    for (const entry of table.live) {
      if (entry.slot === undefined || now - entry.heard < stallMs) continue;
      if (stalled.get(entry) === entry.heard) continue;
      stalled.set(entry, entry.heard);
      log.stall(entry, now - entry.heard);
    }
  };
}

async function listening(service: Service, options: ServerOptions): Promise<Listener> {
  const { host, port, limits, log } = options;
  const onUnread = (unread: Unread) => log.unread(unread);
  const answer = openApp(service);
  /** The answer to a request that has no URL. */
  const onError = (error: unknown) => {
    const id = newRequestId();
    const response = refused(error, { log });
    for (const [name, value] of Object.entries(idHeaders(id))) response.headers.set(name, value);
    log.unread({ id, status: response.status, reason: reason(error), address: undefined });
    return response;
  };
  try {
    const of = { host, port, limits, newId: newRequestId, onUnread };
    return await listen(answer, onError, of);
  } catch (error) {
    throw new UsageError(`Cannot listen on ${host}:${port}: ${reason(error)}`, { cause: error });
  }
}

async function opened(
  service: Service,
  open: Parameters<typeof startServer>[0],
): Promise<Engine | undefined> {
  try {
    const engine = await open((progress) => {
      service.phase = { kind: "loading", progress };
    });
    if (engine) setReady(service, engine);
    return engine;
  } catch (error) {
    service.phase = {
      kind: "failed",
      error: error instanceof Error ? error : new Error(reason(error)),
    };
    throw error;
  }
}

/** Resolves when no request is left. After `ms` it ends answers, also those whose prompts are encoded only then. */
async function drained({ table, ends }: Service, ms: number): Promise<void> {
  const began = performance.now();
  while (table.live.size > 0) {
    if (performance.now() - began >= ms) ends.forEach((end) => end());
    await pause(POLL_MS);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const POLL_MS = 20;
