import { reason, UsageError } from "../errors.ts";
import type { EngineClient } from "../engine/client.ts";
import type { LoadProgress } from "../engine/load/load.ts";
import { openApp, refused } from "./app.ts";
import { type ConnectionLimits, listen, type Listener } from "./http/listener.ts";
import { openService, type Service, type ServiceOptions, setReady } from "./service/service.ts";

export interface ServerOptions extends ServiceOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** How long requests may still run once the server is to stop. */
  readonly drainMs: number;
  readonly limits: ConnectionLimits;
}

export interface Server {
  readonly url: string;
  readonly service: Service;
  /** Resolves once requests are answered. @throws what opening the engine threw. */
  readonly ready: Promise<EngineClient | undefined>;
  /**
   * Takes no more requests, waits for those that run as long as `drainMs`, then ends them.
   * Resolves when nothing is open any more; the engine stays open.
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
  open: (onProgress: (progress: LoadProgress) => void) => Promise<EngineClient | undefined>,
  options: ServerOptions,
): Promise<Server> {
  const service = openService(options);
  const http = await listening(service, options);
  const { hostname, port } = http;
  const ready = opened(service, open);
  return {
    url: `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`,
    service,
    ready,
    async stop() {
      service.draining = true;
      const closed = http.close();
      const timer = setTimeout(() => service.ends.forEach((end) => end()), options.drainMs);
      try {
        await drained(service);
      } finally {
        clearTimeout(timer);
      }
      // What is open later are connections whose clients do not read.
      const ending = setTimeout(http.end, CLOSE_MS);
      await closed;
      clearTimeout(ending);
    },
  };
}

/** How long an answer that is whole may take to reach its client once the server stops. */
const CLOSE_MS = 1000;

async function listening(service: Service, options: ServerOptions): Promise<Listener> {
  const { host, port, log } = options;
  const answer = openApp(service, log);
  try {
    return await listen(answer, (error) => refused(error, log), options);
  } catch (error) {
    throw new UsageError(`Cannot listen on ${host}:${port}: ${reason(error)}`, { cause: error });
  }
}

async function opened(
  service: Service,
  open: Parameters<typeof startServer>[0],
): Promise<EngineClient | undefined> {
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

async function drained({ table }: Service): Promise<void> {
  while (table.live.size > 0) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

const POLL_MS = 20;
