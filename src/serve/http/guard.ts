import { createHash, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import { ApiError } from "./errors.ts";

/** Who may send requests. */
export interface Access {
  /** Undefined: everybody who can reach the port may send requests. */
  readonly apiKey: string | undefined;
  /** Names of this server besides IP addresses and localhost. */
  readonly hosts: readonly string[];
  /** Other origins whose pages may ask; "*" is any. */
  readonly origins: readonly string[];
}

/**
 * @throws ApiError for a request that a browser sends for a page of another origin: its Origin is a
 * foreign one, or its Host is a foreign name whose DNS entry points here (DNS rebinding).
 */
export function checkSource(request: Request, { apiKey, hosts, origins }: Access): void {
  // A request without a Host header is HTTP/1.0, which no browser sends.
  const host = request.headers.get("host") ?? "localhost";
  // With an API key the host is not checked: a page that attacks by DNS rebinding does not have the key.
  if (apiKey === undefined && !isOwnHost(host, hosts)) {
    throw new ApiError(
      403,
      `the host "${shown(host)}" is not one of this server's (--allow-host)`,
      {
        type: "permission_error",
        code: "host_not_allowed",
      },
    );
  }
  const origin = request.headers.get("origin");
  if (origin !== null && !isOwnOrigin(origin, host) && !allowsOrigin(origin, origins)) {
    throw new ApiError(
      403,
      `pages of "${shown(origin)}" may not send requests to this server (--allow-origin)`,
      {
        type: "permission_error",
        code: "origin_not_allowed",
      },
    );
  }
}

/** @throws ApiError without the server's key, as `Authorization: Bearer KEY` or `x-api-key: KEY`. */
export function checkKey(request: Request, { apiKey }: Pick<Access, "apiKey">): void {
  if (apiKey === undefined) return;
  const bearer = /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  const given = bearer ?? request.headers.get("x-api-key") ?? "";
  if (sameText(given, apiKey)) return;
  const message = given === ""
    ? "the API key is missing: give it as Authorization: Bearer KEY"
    : "the API key is wrong";
  throw new ApiError(401, message, {
    type: "authentication_error",
    code: "invalid_api_key",
    headers: { "www-authenticate": "Bearer" },
  });
}

/** Compares in constant time: two digests of equal length are compared whole. */
export function sameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** Headers with which a browser lets a page of another origin read the answer. */
export function originHeaders(
  request: Request,
  { origins }: Pick<Access, "origins">,
): Record<string, string> {
  const origin = request.headers.get("origin");
  if (origin === null || !allowsOrigin(origin, origins)) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "GET, POST, OPTIONS",
    "access-control-allow-headers": request.headers.get("access-control-request-headers") ?? "*",
    "access-control-expose-headers": "x-request-id, request-id, retry-after, eyrie-ignored",
    "vary": "origin",
  };
}

function allowsOrigin(origin: string, origins: readonly string[]): boolean {
  return origins.includes("*") || origins.includes(origin);
}

function isOwnOrigin(origin: string, host: string): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

/** IP addresses and localhost cannot be rebound; of other names only the server's own are allowed. */
function isOwnHost(host: string, hosts: readonly string[]): boolean {
  const name = host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1").toLowerCase();
  if (isIP(name) !== 0 || name === "localhost" || name.endsWith(".localhost")) return true;
  return hosts.some((each) => each.toLowerCase() === name);
}

function shown(text: string): string {
  return text.slice(0, 100);
}
