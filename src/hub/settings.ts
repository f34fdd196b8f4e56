/** Where the cache and the hub are, from the environment; the names and order are Python's. */

/** What the environment says. */
export interface HubSettings {
  /** Folder of the models; it may not be there yet. */
  readonly cache: string;
  /** Base URL of the hub, without a slash at the end. */
  readonly endpoint: string;
  readonly token: string | undefined;
  /** What the token was read from, for messages; absent = HF_TOKEN. */
  readonly tokenFrom?: string;
  /** Ask the cache only. */
  readonly offline: boolean;
  /** A proxy stands between this machine and the hub; absent = none. */
  readonly proxied?: boolean;
}

const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];
const ENDPOINT = "https://huggingface.co";

/**
 * Reads the environment.
 * @param readFile the text of a file, undefined where there is none: for the token.
 */
export function hubSettings(
  env: (name: string) => string | undefined,
  readFile: (path: string) => string | undefined,
): HubSettings {
  const get = (name: string): string | undefined => env(name)?.trim() || undefined;
  const home = get("HOME") ?? get("USERPROFILE") ?? ".";
  const path = (name: string): string | undefined => get(name)?.replace(/^~(?=$|[/\\])/, home);
  const hfHome = path("HF_HOME") ??
    `${path("XDG_CACHE_HOME") ?? `${home}/.cache`}/huggingface`;
  const tokenPath = path("HF_TOKEN_PATH") ?? `${hfHome}/token`;
  return {
    cache: path("HF_HUB_CACHE") ?? path("HUGGINGFACE_HUB_CACHE") ?? `${hfHome}/hub`,
    endpoint: (get("HF_ENDPOINT") ?? ENDPOINT).replace(/\/+$/, ""),
    ...tokenOf(get) ?? { token: readFile(tokenPath)?.trim() || undefined, tokenFrom: tokenPath },
    offline: isTrue(get("HF_HUB_OFFLINE") ?? get("TRANSFORMERS_OFFLINE")),
    proxied: PROXIES.some((name) => (get(name) ?? get(name.toLowerCase())) !== undefined),
  };
}

function tokenOf(get: (name: string) => string | undefined) {
  return ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]
    .map((tokenFrom) => ({ token: get(tokenFrom), tokenFrom }))
    .find(({ token }) => token !== undefined);
}

function isTrue(value: string | undefined): boolean {
  return ["1", "ON", "YES", "TRUE"].includes((value ?? "").toUpperCase());
}
