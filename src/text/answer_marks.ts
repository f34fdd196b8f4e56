/** Marks around the answers of some models that reason: `<think>...</think>\n<answer>\n...\n</answer>`. */
import { isBlank, openTail } from "./stop.ts";

/** What begins and ends an answer. */
export interface AnswerMarks {
  readonly open: string;
  readonly close: string;
}

const MARKS: readonly (AnswerMarks & { readonly known: readonly string[] })[] = [
  // Hunyuan; the second text is how templates of the smaller sizes begin an answer.
  { open: "<answer>", close: "</answer>", known: ["<answer>", "<｜hy_Assistant｜>"] },
  // ERNIE 4.5 Thinking
  { open: "<response>", close: "</response>", known: ["<response>"] },
];

/** The marks that a checkpoint writes. @param has whether its vocabulary or template has a text. */
export function answerMarks(has: (text: string) => boolean): AnswerMarks | undefined {
  const { open, close } = MARKS.find(({ known }) => known.some(has)) ?? {};
  return open === undefined || close === undefined ? undefined : { open, close };
}

/** Leaves marks out of an answer that arrives in pieces. */
export interface AnswerStream {
  /** Returns the text that is certain. */
  push(piece: string): string;
  /** Called when the output ends; returns the text that was held back. */
  end(): string;
}

/**
 * Leaves out the mark at the beginning of an answer and, where there was one, the mark at its end, with the white space
 * around both. Marks further inside are text. The result does not depend on how the answer is cut.
 */
export function answerStream({ open, close }: AnswerMarks): AnswerStream {
  let part: "begin" | "opened" | "inside" | "bare" = "begin";
  let held = "";
  /** White space behind what is held is held too. */
  let holdsSpace = false;

  function take(ended: boolean): string {
    if (part === "begin") {
      const start = held.trimStart();
      if (start.startsWith(open)) {
        held = start.slice(open.length);
        part = "opened";
      } else if (ended || !open.startsWith(start)) part = "bare";
      else return "";
    }
    if (part === "opened") {
      held = held.trimStart();
      if (held !== "") part = "inside";
    }
    const rest = part === "inside" ? lastPart(ended) : "";
    const text = held.slice(0, held.length - rest.length);
    held = ended ? "" : rest;
    return text;
  }

  /** The end of what is held, which the closing mark may be or become: it is left out where the answer ends with it. */
  function lastPart(ended: boolean): string {
    const trimmed = held.trimEnd();
    const tail = trimmed.endsWith(close) ? close.length : ended ? 0 : openTail(trimmed, [close]);
    if (ended && tail === 0) return "";
    return held.slice(trimmed.slice(0, trimmed.length - tail).trimEnd().length);
  }

  return {
    push(piece) {
      held += piece;
      if (holdsSpace && isBlank(piece)) return "";
      const text = take(false);
      holdsSpace = isBlank(held) || part === "inside" && held !== "";
      return text;
    },
    end: () => take(true),
  };
}
