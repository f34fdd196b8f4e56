import type { Engine } from "../../src/engine/engine.ts";
import type { EngineOptions } from "../../src/engine/options.ts";
import type { SpeculationChoice } from "../../src/engine/schedule/speculation_choice.ts";
import { FALLBACK } from "../../src/engine/sampling.ts";
import { connectionLimits } from "../../src/serve/http/listener.ts";
import { openLog } from "../../src/serve/service/log.ts";
import { type Server, type ServerOptions, startServer } from "../../src/serve/server.ts";
import { open } from "../engine/worker/open.ts";

const SPECULATE: SpeculationChoice = {
  numSteps: 3,
  allSteps: false,
};

/** A server of the embedded model on the software adapter, on a port of its own. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly server: Server;
  /** The server's logged faults. */
  readonly log: readonly string[];
  /** Sends a request with a JSON body, or a GET if there is no body. */
  ask(path: string, body?: unknown, init?: RequestInit): Promise<Response>;
  /** The answer's JSON. */
  json(path: string, body?: unknown, init?: RequestInit): Promise<Json>;
  /** The parsed data of a stream's events; `[DONE]` is returned as a text. */
  stream(path: string, body: unknown): Promise<Json[]>;
}

// deno-lint-ignore no-explicit-any -- what a server answers, which assertions look at
export type Json = any;

export const DEFAULTS: ServerOptions = {
  host: "127.0.0.1",
  port: 0,
  apiKey: undefined,
  hosts: [],
  origins: [],
  maxBatch: 4,
  maxQueue: 8,
  roundMs: 60_000,
  stallMs: 60_000,
  maxQueueMs: undefined,
  drainDelayMs: 0,
  drainMs: 5000,
  maxTokens: undefined,
  limits: connectionLimits(0),
  modelName: "fledgling",
  otherNames: [],
  anyModel: false,
  strict: false,
  sampling: () => ({ ...FALLBACK, temperature: 0 }),
  templateArguments: {},
  version: "0.0.0",
  shownName: (name) => name,
  log: openLog({ format: "none", write: () => {} }),
  logPrompts: false,
};

/** Opens an engine in a worker with the options that the tests' servers use. */
export function openEngine(
  maxBatch: number = DEFAULTS.maxBatch,
  { limits, speculation, ...engine }: EngineOptions = {},
): ReturnType<typeof open> {
  return open({
    ...engine,
    limits: { maxBatch, constrained: true, predictions: true, ...limits },
    speculation: { speculate: SPECULATE, ...speculation },
  });
}

/** A server with an engine of its own. */
export async function serve(
  options: Partial<ServerOptions> = {},
  engine: EngineOptions = {},
): Promise<TestServer> {
  let opened: Engine | undefined;
  const server = await serveWith(async (onProgress) => {
    const hooks = { onProgress, ...engine.hooks };
    return opened = await openEngine(options.maxBatch, { ...engine, hooks });
  }, options);
  return {
    ...server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await opened?.terminate();
    },
  };
}

/** A server with the engine that `open` returns, which is not closed with it. */
export async function serveWith(
  open: Parameters<typeof startServer>[0],
  options: Partial<ServerOptions> = {},
): Promise<TestServer> {
  const log: string[] = [];
  const server = await startServer(open, { ...DEFAULTS, log: faultLog(log), ...options });
  await server.ready;
  return {
    ...testClient(server.url),
    server,
    log,
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** A log of the server's faults alone. */
export function faultLog(lines: string[]): ServerOptions["log"] {
  return openLog({ format: "none", write: (line) => void lines.push(line) });
}

/** Requests to a server at `url`. */
export function testClient(url: string): Pick<TestServer, "url" | "ask" | "json" | "stream"> {
  const ask: TestServer["ask"] = (path, body, init = {}) =>
    fetch(`${url}${path}`, {
      ...body === undefined ? {} : {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
      },
      ...init,
    });
  return {
    url,
    ask,
    json: async (path, body, init) => await (await ask(path, body, init)).json(),
    async stream(path, body) {
      const text = await (await ask(path, body)).text();
      return text.split("\n\n").filter((block) => block !== "").map((block) => {
        const data = block.replace(/^event: .*\n/, "").replace(/^data: /, "");
        return data === "[DONE]" ? data : JSON.parse(data);
      });
    },
  };
}

/** A conversation of one message. */
export function user(content: string): { messages: unknown[] } {
  return { messages: [{ role: "user", content }] };
}
