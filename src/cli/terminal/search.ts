import { type Edited, editing } from "./edited.ts";
import type { Key } from "./keys.ts";
import type { Prompted } from "./screen.ts";

/** A search in the history, as bash's `reverse-i-search`. */
export interface Search {
  readonly query: string;
  /** Place in the history of the entry that is shown; -1 before anything was found. */
  readonly at: number;
  readonly failed: boolean;
  /** What was being edited when the search began. */
  readonly before: Edited;
}

export function beginSearch(before: Edited): Search {
  return { query: "", at: -1, failed: false, before };
}

/** The search with another query or from another place on; `history` is newest first. */
function searchFrom(history: readonly string[], search: Search, from: number): Search {
  const { query, before } = search;
  if (query === "") return beginSearch(before);
  const found = history.findIndex((entry, place) => place >= from && entry.includes(query));
  return { ...search, at: found < 0 ? search.at : found, failed: found < 0 };
}

/** The entry that was found, with the cursor at what was looked for. */
export function found(history: readonly string[], { at, query, before }: Search): Edited {
  const entry = history[at];
  if (entry === undefined) return before;
  const line = editing(entry);
  const place = entry.lastIndexOf(query);
  // A long entry is one cell, which has no place inside.
  if (place < 0 || line.cells.length < 2) return line;
  return { ...line, cursor: editing(entry.slice(0, place)).cells.length };
}

/** The search as it is shown. */
export function searchLine(history: readonly string[], search: Search): Prompted {
  const { failed, query } = search;
  const prompt = `(${failed ? "failed " : ""}reverse-i-search)\`${query}': `;
  return { ...found(history, search), prompt };
}

/**
 * The search after a key; undefined at a key that ends it. Ctrl+R again goes to an older entry.
 *
 * @param lastQuery what Ctrl+R takes while nothing has been typed.
 */
export function searchKey(
  search: Search,
  key: Key,
  { history, lastQuery }: { readonly history: readonly string[]; readonly lastQuery: string },
): Search | undefined {
  const { query, at } = search;
  if (key.kind === "text") {
    return searchFrom(history, { ...search, query: query + key.text }, Math.max(0, at));
  }
  if (key.kind === "paste") return undefined;
  if (key.name === "C-r") {
    return query === ""
      ? searchFrom(history, { ...search, query: lastQuery }, 0)
      : searchFrom(history, search, at + 1);
  }
  if (key.name !== "backspace") return undefined;
  const shorter = Array.from(query).slice(0, -1).join("");
  return searchFrom(history, { ...search, query: shorter, at: -1 }, 0);
}
