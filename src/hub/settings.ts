/** Where the cache and the hub are, from the environment; the names and order are Python's. */

/** What the environment says. */
export interface HubSettings {
  /** Folder of the models; it may not be there yet. */
  readonly cache: string;
  /** Base URL of the hub, without a slash at the end. */
  readonly endpoint: string;
  readonly token: string | undefined;
  /** Ask the cache only. */
  readonly offline: boolean;
}

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
    token: get("HF_TOKEN") ?? get("HUGGING_FACE_HUB_TOKEN") ??
      (readFile(tokenPath)?.trim() || undefined),
    offline: isTrue(get("HF_HUB_OFFLINE") ?? get("TRANSFORMERS_OFFLINE")),
  };
}

function isTrue(value: string | undefined): boolean {
  return ["1", "ON", "YES", "TRUE"].includes((value ?? "").toUpperCase());
}
