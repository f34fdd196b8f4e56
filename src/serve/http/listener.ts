import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import { ApiError } from "./errors.ts";

/** What connections may take. Times are milliseconds. */
export interface ConnectionLimits {
  /** Connections that are open at once; others are closed as they come. */
  readonly connections: number;
  /** For the headers: from the connection's beginning, of a later request from its first byte. */
  readonly headersMs: number;
  /** For a whole request: headers and body. */
  readonly requestMs: number;
  /** Between two requests. */
  readonly idleMs: number;
  /** Requests that wait for the one before them on their connection (HTTP pipelining). */
  readonly pipelined: number;
}

/** @param requests that may run or wait at once: connections beyond them are for what answers at once. */
export function connectionLimits(requests: number): ConnectionLimits {
  const times = { headersMs: 10_000, requestMs: 60_000, idleMs: 65_000 };
  return { connections: requests + 1000, ...times, pipelined: 16 };
}

/** The connection's side of one request. */
export interface Exchange {
  /** The client's address. */
  readonly address: string | undefined;
  /**
   * Calls `listener` once, when nothing more is sent: with the status that was sent, or 499 where
   * the client left before, and whether the whole answer was sent.
   */
  onEnd(listener: (ended: { readonly status: number; readonly complete: boolean }) => void): void;
}

/** Answers one HTTP request. */
export type Handler = (request: Request, exchange: Exchange) => Promise<Response>;

export interface Listener {
  readonly hostname: string;
  readonly port: number;
  /** Takes no more connections; resolves when none is open. */
  close(): Promise<void>;
  /** Ends all connections, wherever they are. */
  end(): void;
}

/**
 * HTTP/1.1 by node:http: Deno.serve has no limit of a connection's time or headers (Deno 2.9.6).
 * Headers have at most 16 KiB. What is no request, too large or too slow is answered by node with
 * 400, 431 or 408 and closed.
 *
 * @param onError answers what `handler` threw, and with an ApiError what is no URL.
 * @throws what listening there throws.
 */
export async function listen(
  handler: Handler,
  onError: (error: unknown) => Response,
  { host, port, limits }: {
    readonly host: string;
    readonly port: number;
    readonly limits: ConnectionLimits;
  },
): Promise<Listener> {
  const answered: FetchCallback = (request, { incoming, outgoing }) =>
    handler(request, exchangeOf(incoming as IncomingMessage, outgoing as ServerResponse));
  const answer = getRequestListener(answered, {
    overrideGlobalObjects: false,
    errorHandler: (error) => onError(error instanceof RequestError ? notUrl(error) : error),
  });
  const server = createServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(1000, limits.headersMs / 2),
  }, oneByOne(answer, limits.pipelined));
  server.maxConnections = limits.connections;
  // Node drops headers beyond the 2000th in silence; their size is limited already.
  server.maxHeadersCount = 0;
  let closing = false;
  server.on("request", (_, outgoing) => {
    outgoing.once("close", () => closing && server.closeIdleConnections());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { address, port: given } = server.address() as AddressInfo;
  return {
    ...{ hostname: address, port: given },
    close() {
      closing = true;
      return new Promise((resolve) => server.close(() => resolve()));
    },
    end: () => server.closeAllConnections(),
  };
}

type FetchCallback = Parameters<typeof getRequestListener>[0];

/** Nginx's status for a request whose client left before it was answered. */
const CLIENT_LEFT = 499;

function exchangeOf(incoming: IncomingMessage, outgoing: ServerResponse): Exchange {
  return {
    address: incoming.socket.remoteAddress,
    onEnd(listener) {
      outgoing.once("close", () => {
        const status = outgoing.headersSent ? outgoing.statusCode : CLIENT_LEFT;
        listener({ status, complete: outgoing.writableFinished });
      });
    },
  };
}

type NodeListener = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown;

/**
 * Begins a request when the one before it on its connection has been answered. Node would begin them
 * all, and tell those that wait for the connection nothing of its end.
 */
function oneByOne(answer: NodeListener, most: number): NodeListener {
  const waiting = new WeakMap<Socket, number>();
  return (incoming, outgoing) => {
    const { socket } = incoming;
    if (outgoing.socket) return answer(incoming, outgoing);
    const count = (waiting.get(socket) ?? 0) + 1;
    if (count > most) return void socket.destroy();
    waiting.set(socket, count);
    outgoing.once("socket", () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      answer(incoming, outgoing);
    });
  };
}

function notUrl({ message }: RequestError): ApiError {
  return new ApiError(400, `the request's target or Host header cannot be used: ${message}`);
}
