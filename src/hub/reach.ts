/** Whether there is a way to the hub at all: without a network nobody waits for retries. */
import { reason } from "../errors.ts";
import { persist, type Persistence, TransientError } from "./retry.ts";
import type { HubSettings } from "./settings.ts";

/** Opens a connection; `Deno.connect`, which tries IPv4 and IPv6 side by side. */
export type Connect = (
  to: { readonly hostname: string; readonly port: number; readonly signal: AbortSignal },
) => Promise<Disposable>;

/** Limit of all tries together. It may be short: even a hub that answers slowly accepts connections quickly. */
const CONNECT_MS = 2000;

/**
 * Connects to the hub's host and closes the connection; tries twice where it fails at once. Behind a proxy
 * nothing is tried, because a direct connection would tell nothing.
 * @param what for the message: `Cannot get "org/name"`.
 * @throws UnreachableError before 3 s are over.
 */
export async function reach(
  what: string,
  { endpoint, proxied }: Pick<HubSettings, "endpoint" | "proxied">,
  { waits, signal, connect = Deno.connect }: Pick<Persistence, "waits" | "signal"> & {
    readonly connect?: Connect | undefined;
  },
): Promise<void> {
  if (proxied) return;
  const { hostname, host, port, protocol } = new URL(endpoint);
  const limit = AbortSignal.timeout(CONNECT_MS);
  const stop = signal ? AbortSignal.any([signal, limit]) : limit;
  const to = {
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port) || (protocol === "https:" ? 443 : 80),
    signal: stop,
  };
  await persist(what, async () => {
    try {
      await hungUp(connect(to), stop);
    } catch (error) {
      const why = limit.aborted ? `nothing answers within ${CONNECT_MS / 1000} s` : reason(error);
      throw new TransientError(`no connection to ${host} (${why})`);
    }
  }, { waits: waits.slice(0, 1), signal });
}

/** Closes the connection, also one that comes too late. */
async function hungUp(connecting: Promise<Disposable>, stop: AbortSignal): Promise<void> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const onStop = () => reject(stop.reason);
  if (stop.aborted) onStop();
  stop.addEventListener("abort", onStop);
  try {
    const closed = connecting.then((connection) => connection[Symbol.dispose]());
    await Promise.race([closed, stopped]);
  } finally {
    stop.removeEventListener("abort", onStop);
  }
}
