/** Searches the hub for models whose names resemble one that it does not have. */
import { asker } from "./http.ts";
import type { ModelName } from "./names.ts";
import type { HubSettings } from "./settings.ts";

/** Limit of all requests together. It is short, because they only improve an error message. */
const SEARCH_MS = 5000;
const MAX_SEARCHES = 3;
const MAX_FOUND = 50;

/**
 * Names (`org/name`) that the hub's search finds, most downloaded first; empty where it does not answer.
 * The hub finds names that contain the text, so a typing error hides the name that was meant. Where nothing is
 * found, the search is repeated without the last part of the name.
 */
export async function searchModels(
  name: ModelName,
  settings: HubSettings,
  signal?: AbortSignal,
): Promise<string[]> {
  const limit = AbortSignal.timeout(SEARCH_MS);
  const stop = signal === undefined ? limit : AbortSignal.any([signal, limit]);
  const ask = asker(name, settings);
  let text = name.repo.slice(name.repo.indexOf("/") + 1);
  try {
    for (let i = 0; i < MAX_SEARCHES && text !== ""; i++) {
      const query = new URLSearchParams({
        search: text,
        sort: "downloads",
        limit: `${MAX_FOUND}`,
      });
      const answer = await ask(`${settings.endpoint}/api/models?${query}`, { signal: stop });
      const found = namesIn(await answer.json());
      if (found.length > 0) return found;
      text = text.slice(0, Math.max(0, text.search(/[-_.][^-_.]*$/)));
    }
  } catch {
    signal?.throwIfAborted();
  }
  return [];
}

function namesIn(answer: unknown): string[] {
  if (!Array.isArray(answer)) return [];
  return answer.map((each) => (each as { id?: unknown } | null)?.id)
    .filter((id) => typeof id === "string")
    .filter((id) => /^[\w.-]+\/[\w.-]+$/.test(id));
}
