import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import { ApiError } from "./errors.ts";

/** What connections may take. Times are milliseconds. */
export interface ConnectionLimits {
  /** Connections that are open at once; others are closed as they come. */
  readonly connections: number;
  /** For the headers, counted from the connection's start; for a later request from its first byte. */
  readonly headersMs: number;
  /** For a whole request: headers and body. */
  readonly requestMs: number;
  /** Between two requests. */
  readonly idleMs: number;
  /** Requests that wait for the one before them on their connection (HTTP pipelining). */
  readonly pipelined: number;
}

/** @param requests that may run or wait at once; 1000 more connections are for routes that answer immediately. */
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
 * HTTP/1.1 by node:http, because Deno.serve has no limits for a connection's time or headers (Deno 2.9.6).
 * Headers have at most 16 KiB. A connection that sends no valid request, sends too much or is too slow gets
 * 400, 431 or 408 and is closed.
 *
 * @param onError makes the answer for an error that `handler` threw; for an invalid URL it gets an ApiError.
 * @param of.newId makes the id of a request that `handler` never gets.
 * @param of.onUnread called where a connection was closed because it sent no valid request.
 * @throws what opening the listener throws.
 */
export async function listen(
  handler: Handler,
  onError: (error: unknown) => Response,
  { host, port, limits, newId, onUnread }: {
    readonly host: string;
    readonly port: number;
    readonly limits: ConnectionLimits;
    readonly newId: () => string;
    readonly onUnread: (unread: Unread) => void;
  },
): Promise<Listener> {
  const types: ContentTypes = new WeakMap();
  const answered: FetchCallback = async (request, env) => {
    const [incoming, outgoing] = [env.incoming as IncomingMessage, env.outgoing as ServerResponse];
    if (incoming.httpVersion !== "1.0" && incoming.headers.host === undefined) {
      const headers = { connection: "close" };
      throw new ApiError(400, "the request has no Host header", { headers });
    }
    const response = await handler(request, exchangeOf(incoming, outgoing));
    types.set(outgoing, response.headers.get("content-type") ?? "");
    return response;
  };
  const answer = getRequestListener(answered, {
    overrideGlobalObjects: false,
    // HTTP/1.0 knows no Host header.
    hostname: "localhost",
    errorHandler: (error) => onError(error instanceof RequestError ? notUrl(error) : error),
  });
  const server = createServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(1000, limits.headersMs / 2),
    // Node would answer without an id.
    requireHostHeader: false,
  }, oneByOne(answer, { most: limits.pipelined, types }));
  server.maxConnections = limits.connections;
  // Deno's types do not have it.
  Object.assign(server, { httpAllowHalfOpen: true });
  // Node drops headers beyond the 2000th in silence; their size is limited already.
  server.maxHeadersCount = 0;
  const refused = new WeakSet<object>();
  server.on("clientError", (error, socket) => {
    // Otherwise all further data on this connection would raise the error again.
    socket.removeAllListeners("data");
    if (refused.has(socket)) return;
    refused.add(socket);
    const unread = refuseUnread(error, socket as Socket, newId());
    if (unread) onUnread(unread);
  });
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
    hostname: address,
    port: given,
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

/** Data from a connection that could not be parsed as a request. */
export interface Unread {
  /** The id that its answer has. */
  readonly id: string;
  readonly status: number;
  /** The reason by node's name: `HPE_HEADER_OVERFLOW`. */
  readonly reason: string;
  readonly address: string | undefined;
}

const UNREAD_STATUS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
};

/**
 * Answers with the error's status and closes the connection, as node does without a listener. Returns
 * undefined where the client closed or reset it, or had sent nothing.
 */
function refuseUnread(
  error: Error & { readonly code?: string },
  socket: Socket,
  id: string,
): Unread | undefined {
  const { code = error.message } = error;
  const { remoteAddress: address, bytesRead } = socket;
  const line = UNREAD_STATUS[code] ?? "400 Bad Request";
  const { _httpMessage: current } = socket as Socket & { readonly _httpMessage?: ServerResponse };
  if (socket.writable && !current?.headersSent) {
    const ids = `X-Request-Id: ${id}\r\nRequest-Id: ${id}`;
    socket.write(`HTTP/1.1 ${line}\r\n${ids}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
  }
  socket.destroySoon();
  // Any other error code means that the client has reset the connection.
  if (bytesRead === 0 || !/^(HPE_|ERR_HTTP_)/.test(code)) return undefined;
  return { id, status: Number.parseInt(line), reason: code.slice(0, 100), address };
}

type NodeListener = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown;

/**
 * Begins a request when the one before it on its connection has been answered. Node would begin all of
 * them at once, and would not report the connection's end to the requests that wait.
 */
function oneByOne(
  answer: NodeListener,
  { most, types }: { readonly most: number; readonly types: ContentTypes },
): NodeListener {
  const waiting = new WeakMap<Socket, number>();
  const probes = new WeakMap<Socket, ReturnType<typeof probing>>();
  function begin(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    const probed = probes.get(socket) ?? probing(socket, types);
    probes.set(socket, probed);
    probed(incoming, outgoing);
    answer(incoming, outgoing);
  }
  return (incoming, outgoing) => {
    const { socket } = incoming;
    if (outgoing.socket) return begin(incoming, outgoing);
    const count = (waiting.get(socket) ?? 0) + 1;
    if (count > most) return void socket.destroy();
    waiting.set(socket, count);
    outgoing.once("socket", () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      begin(incoming, outgoing);
    });
  };
}

/** Content types of answers: node does not keep the headers that it has written. */
type ContentTypes = WeakMap<ServerResponse, string>;

/** Waits between writes to a half-closed connection, ms; the last one repeats. */
const PROBES_MS = [0, 20, 100, 250, 1000, 5000] as const;

/**
 * Detects a client that has left. A half-closed connection looks the same whether the client still reads
 * its answer or has left. So filler bytes, which are valid between any two parts of an answer, are
 * written: if the client's program has ended, its system resets the connection, which ends the request.
 *
 * Returns a function to call with each request of the connection when it begins.
 */
function probing(
  socket: Socket,
  types: ContentTypes,
): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  let current: readonly [IncomingMessage, ServerResponse] | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function probe(count: number): void {
    if (current === undefined) return;
    const [incoming, outgoing] = current;
    if (!incoming.complete) return void socket.destroy();
    const between = betweenParts(types.get(outgoing) ?? "");
    // What is written after the end would be an error that ends the process.
    if (outgoing.headersSent && !outgoing.writableEnded && between !== "") outgoing.write(between);
    if (!outgoing.headersSent && incoming.httpVersion === "1.1") {
      socket.write("HTTP/1.1 102 Processing\r\n\r\n");
    }
    const wait = PROBES_MS[count + 1] ?? PROBES_MS.at(-1);
    timer = setTimeout(() => probe(count + 1), wait);
  }

  socket.once("end", () => probe(0));
  socket.once("close", () => clearTimeout(timer));
  return (incoming, outgoing) => {
    const of = [incoming, outgoing] as const;
    current = of;
    outgoing.once("close", () => {
      if (current === of) current = undefined;
    });
  };
}

/** Filler that a client ignores between two events, or before a line of JSON. */
function betweenParts(type: string): string {
  if (type.startsWith("text/event-stream")) return ":\n\n";
  return type.startsWith("application/x-ndjson") ? " " : "";
}

function notUrl({ message }: RequestError): ApiError {
  return new ApiError(400, `the request's target or Host header cannot be used: ${message}`);
}
