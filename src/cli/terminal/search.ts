import type { Interface, Key } from "node:readline";
import { draw, type TakeKey } from "./readline.ts";

/** A search on its way: bash's `reverse-i-search`. */
interface Search {
  readonly query: string;
  /** Place in the history of the line that is shown; -1 before anything was found. */
  readonly at: number;
  readonly failed: boolean;
}

/** What the editor showed before the search began. */
interface Before {
  readonly prompt: string;
  readonly line: string;
  readonly cursor: number;
}

const NOTHING: Search = { query: "", at: -1, failed: false };

/** The search with another query or from another place on; `history` is newest first. */
export function searchFrom(
  history: readonly string[],
  { query, at }: Omit<Search, "failed">,
  from: number,
): Search {
  if (query === "") return NOTHING;
  const found = history.findIndex((line, place) => place >= from && line.includes(query));
  return { query, at: found < 0 ? at : found, failed: found < 0 };
}

/**
 * Ctrl+R over the history (newest first): keys change what is looked for, Ctrl+R again goes to an
 * older line, Ctrl+G and Escape give the line back that was there, any other key acts on the line found.
 */
export function reverseSearch(editor: Interface, history: readonly string[]): TakeKey {
  let search = NOTHING;
  let before: Before | undefined;
  let lastQuery = "";

  function show(next: Search): true {
    search = next;
    const line = history[search.at] ?? before?.line ?? "";
    const place = line.lastIndexOf(search.query);
    editor.setPrompt(`(${search.failed ? "failed " : ""}reverse-i-search)\`${search.query}': `);
    draw(editor, { line, cursor: place < 0 ? line.length : place });
    return true;
  }

  function begin(): true {
    before = { prompt: editor.getPrompt(), line: editor.line, cursor: editor.cursor };
    return show(NOTHING);
  }

  function end({ line, cursor }: Pick<Before, "line" | "cursor">): void {
    if (search.query !== "") lastQuery = search.query;
    editor.setPrompt(before?.prompt ?? "");
    before = undefined;
    draw(editor, { line, cursor });
  }

  return (text, key) => {
    const older = key.ctrl === true && key.name === "r";
    if (before === undefined) return older && begin();
    const { query, at } = search;
    if (older) {
      return show(
        query === ""
          ? searchFrom(history, { query: lastQuery, at }, 0)
          : searchFrom(history, search, at + 1),
      );
    }
    if (key.name === "backspace") {
      const shorter = Array.from(query).slice(0, -1).join("");
      return show(searchFrom(history, { query: shorter, at: -1 }, 0));
    }
    if (isText(text, key)) {
      return show(searchFrom(history, { query: query + text, at }, Math.max(0, at)));
    }
    const cancelled = (key.ctrl === true && key.name === "g") || key.name === "escape";
    end(cancelled ? before : editor);
    return cancelled;
  };
}

function isText(text: string | undefined, { ctrl, meta }: Key): boolean {
  return text !== undefined && !ctrl && !meta && /^[^\p{Cc}]+$/u.test(text);
}
