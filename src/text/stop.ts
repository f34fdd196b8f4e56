import { UsageError } from "../errors.ts";

/** Finds the first stop text in an output that arrives in pieces. */
export interface StopScanner {
  /** `text` may be shown now; `stop` is the stop text that is complete, and then for good. */
  push(piece: string): { readonly text: string; readonly stop: string | undefined };
  /** Called when the output ends; returns the text that was held back because a stop might have begun there. */
  end(): string;
}

/**
 * A scanner for `stops`. The output ends where the first stop text becomes complete and leaves that
 * text out; of several that end together the longest counts. So the result does not depend on how
 * the output was cut into pieces, and nothing is held back but a tail that may begin a stop.
 * @throws UsageError when a stop text is empty.
 */
export function stopScanner(stops: readonly string[]): StopScanner {
  if (stops.includes("")) throw new UsageError(`Cannot stop at "": the text is empty`);
  if (stops.length === 0) {
    return { push: (text) => ({ text, stop: undefined }), end: () => "" };
  }
  let held = "";
  let stop: string | undefined;
  return {
    push: (piece) => {
      if (stop !== undefined) return { text: "", stop };
      const text = held + piece;
      const found = firstStop(text, stops);
      stop = found?.stop;
      const end = found?.begin ?? text.length - openTail(text, stops);
      held = found ? "" : text.slice(end);
      return { text: text.slice(0, end), stop };
    },
    end: () => {
      const text = held;
      held = "";
      return text;
    },
  };
}

/** The stop that is complete first, and where it begins; undefined when none is complete. */
function firstStop(
  text: string,
  stops: readonly string[],
): { readonly stop: string; readonly begin: number } | undefined {
  const found = stops
    .map((stop) => ({ stop, begin: text.indexOf(stop), end: text.indexOf(stop) + stop.length }))
    .filter(({ begin }) => begin >= 0)
    .toSorted((a, b) => a.end - b.end || a.begin - b.begin);
  return found[0];
}

/** Where the first of these marks is in the text; undefined if none is. */
export function firstMark(
  text: string,
  marks: readonly string[],
): { readonly mark: string; readonly at: number } | undefined {
  return marks.map((mark) => ({ mark, at: text.indexOf(mark) }))
    .filter(({ at }) => at >= 0).toSorted((a, b) => a.at - b.at)[0];
}

/** Whether a text is white space, and not empty. */
export function isBlank(text: string): boolean {
  return text !== "" && text.trim() === "";
}

/** Length of the longest end of `text` that begins one of `marks`. */
export function openTail(text: string, marks: readonly string[]): number {
  const longest = Math.max(0, ...marks.map((mark) => mark.length - 1));
  for (let length = Math.min(longest, text.length); length > 0; length--) {
    const tail = text.slice(-length);
    if (marks.some((mark) => mark.startsWith(tail))) return length;
  }
  return 0;
}
