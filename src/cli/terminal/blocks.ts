import stringWidth from "string-width";

/** How a line is shown: wrapped or unchanged, its look, and its indentation. */
export interface Line {
  readonly wrapped: boolean;
  readonly look?: "heading" | "code" | "mark";
  /** Columns that the lines after its first are indented by. */
  readonly hang: number;
}

/** What earlier lines mean to the next one. */
export interface Blocks {
  /** The mark that the open code block began with. */
  readonly fence: string | undefined;
  readonly list: boolean;
  /** The line before was blank, or code by its indentation: an indented line now is code. */
  readonly gap: boolean;
}

export const NO_BLOCKS: Blocks = { fence: undefined, list: false, gap: true };

interface LineWithState {
  readonly line: Line;
  readonly blocks: Blocks;
}

const CODE: Line = { wrapped: false, look: "code", hang: 0 };
const FENCE: Line = { wrapped: false, look: "mark", hang: 0 };
const TEXT: Line = { wrapped: true, hang: 0 };
/** A table row is not wrapped: that would break its columns. */
const ROW: Line = { wrapped: false, hang: 0 };

/** The begin of a fence, a heading or an item of a list, if what follows makes it one. */
const MAY_BE_MARK = /^(`{1,2}|~{1,2}|#{1,6}|[-*+]|\d{1,9}[.)]?)$/;

/**
 * Which Markdown line begins with `text`; undefined while more of it must come to tell.
 *
 * @param text may hold the whole line and more.
 * @param ended nothing comes after `text`.
 */
export function beginLine(text: string, blocks: Blocks, ended: boolean): LineWithState | undefined {
  const [start = "", ...more] = text.split("\n", 2);
  const whole = ended || more.length > 0;
  if (blocks.fence !== undefined) return inFence(start, { blocks, fence: blocks.fence, whole });
  const [, lead = "", first = "", rest = ""] = /^([ \t]*)([^ \t]*)([^]*)$/.exec(start) ?? [];
  const indent = stringWidth(lead.replaceAll("\t", "    "));
  if (indent >= 4 && blocks.gap && !blocks.list) return { line: CODE, blocks };
  if (first === "") return whole ? { line: TEXT, blocks: { ...blocks, gap: true } } : undefined;
  if (!whole && rest === "" && MAY_BE_MARK.test(first)) return undefined;
  const within = { ...blocks, gap: false, list: blocks.list && (indent > 0 || !blocks.gap) };
  const fence = /^(`{3,}(?=[^`]*$)|~{3,})/.exec(first + rest)?.[0];
  if (fence !== undefined) {
    return whole ? { line: FENCE, blocks: { ...within, fence } } : undefined;
  }
  if (first.startsWith("|")) return { line: ROW, blocks: within };
  if (/^#{1,6}$/.test(first)) return { line: { ...TEXT, look: "heading" }, blocks: within };
  if (/^([-*+]|\d{1,9}[.)])$/.test(first)) {
    return {
      line: { ...TEXT, hang: indent + first.length + 1 },
      blocks: { ...within, list: true },
    };
  }
  return { line: { ...TEXT, hang: first.startsWith(">") ? indent + 2 : indent }, blocks: within };
}

function inFence(
  start: string,
  { blocks, fence, whole }: { blocks: Blocks; fence: string; whole: boolean },
): LineWithState | undefined {
  const [mark = ""] = fence;
  const marks = new RegExp(`^[ \\t]*(${mark}*)[ \\t]*$`).exec(start)?.[1];
  if (marks !== undefined && !whole) return undefined;
  if (marks === undefined || marks.length < fence.length) return { line: CODE, blocks };
  return { line: FENCE, blocks: { ...blocks, fence: undefined, gap: false } };
}
