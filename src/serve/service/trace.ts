import { randomId } from "../tools/family.ts";
import type { LiveRequest } from "./table.ts";

/** One HTTP request, as its line in the log reports it. */
export interface Trace {
  /** The client's `x-request-id`, or one made here. */
  readonly id: string;
  readonly method: string;
  /** The path without its query, which may hold a key. */
  readonly path: string;
  /** Template of the path, see `templateOf`; undefined if no route answers. */
  route: string | undefined;
  /** The client's address. */
  readonly address: string | undefined;
  /** When its headers had arrived, performance.now(). */
  readonly arrived: number;
  /** Why it was refused, or failed after its answer had begun. */
  reason: string | undefined;
  /** The requests that were made to the engine for it. */
  readonly answers: LiveRequest[];
  /** Its prompts and outputs; only where the log is asked to hold them. */
  readonly texts: { prompts: unknown; readonly outputs: string[] } | undefined;
}

/** Longest part of a path that is kept. */
const MAX_PATH = 200;

/** @param of.keepsTexts the log is asked to hold prompts and outputs. */
export function openTrace(
  request: Request,
  { address, keepsTexts }: { readonly address: string | undefined; readonly keepsTexts: boolean },
): Trace {
  return {
    id: requestId(request.headers.get("x-request-id")),
    method: request.method.slice(0, 20),
    path: new URL(request.url).pathname.slice(0, MAX_PATH),
    route: undefined,
    address,
    arrived: performance.now(),
    reason: undefined,
    answers: [],
    texts: keepsTexts ? { prompts: undefined, outputs: [] } : undefined,
  };
}

/** The id that a client gave, at most 128 letters, digits and `._:/=+@-`; another is made here. */
function requestId(given: string | null): string {
  const kept = (given ?? "").replaceAll(/[^\w.:/=+@-]/g, "").slice(0, 128);
  return kept === "" ? newRequestId() : kept;
}

/** The id of a request whose client gave none. */
export function newRequestId(): string {
  return `req_${randomId(24)}`;
}

/** The headers that tell a client its request's id; the second is the name that Anthropic's clients read. */
export function idHeaders(id: string): Readonly<Record<string, string>> {
  return { "x-request-id": id, "request-id": id };
}
