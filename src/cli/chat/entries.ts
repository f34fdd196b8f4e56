import type { Entry } from "./commands.ts";

const QUOTES = '"""';

/** Lines typed since the opening quotes; undefined outside quotes. */
export type Pending = readonly string[] | undefined;

/** What a typed line makes: an entry, or more lines to wait for. */
export type JoinedLine = { readonly entry: Entry } | { readonly pending: readonly string[] };

/**
 * Joins lines into entries. Triple quotes at the start of a line begin a message of several
 * lines, at the end of a line they end it.
 */
export function feed(pending: Pending, line: string): JoinedLine {
  const opens = pending === undefined && line.trimStart().startsWith(QUOTES);
  if (pending === undefined && !opens) {
    return { entry: { text: line, literal: line.includes("\n") } };
  }
  const rest = opens ? line.trimStart().slice(QUOTES.length) : line;
  const closes = rest.trimEnd().endsWith(QUOTES);
  const lines = [...pending ?? [], closes ? rest.trimEnd().slice(0, -QUOTES.length) : rest];
  if (!closes) return { pending: lines };
  // Quotes alone on a line are no line of the message.
  if (lines[0] === "") lines.shift();
  if (lines.length > 0 && lines.at(-1) === "") lines.pop();
  return { entry: { text: lines.join("\n"), literal: true } };
}
