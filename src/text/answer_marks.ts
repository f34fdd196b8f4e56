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

/** What calls begin with in the formats of these models: `<tool_call>`, or `<tool_calls>` around several. */
const CALL = "<tool_call";

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
 * Leaves out the mark at the beginning of an answer and, where there was one, the mark at its end or before a call,
 * with the white space around both. Marks further inside are text. The result does not depend on how the answer is
 * cut.
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
    const before = part === "inside" ? beforeCall() : "";
    const rest = part === "inside" ? lastPart(ended) : "";
    const text = before + held.slice(0, held.length - rest.length);
    held = ended ? "" : rest;
    return text;
  }

  /** Takes the answer in front of a closing mark that a call follows. The rest, without the mark, stays held. */
  function beforeCall(): string {
    for (let at = held.indexOf(close); at >= 0; at = held.indexOf(close, at + 1)) {
      const behind = held.slice(at + close.length);
      if (!behind.trimStart().startsWith(CALL)) continue;
      const answer = held.slice(0, at).trimEnd();
      held = behind;
      part = "bare";
      return answer;
    }
    return "";
  }

  /** The end of what is held, from what may be the closing mark on: it is left out where the answer ends with it. */
  function lastPart(ended: boolean): string {
    const from = (at: number) => held.slice(held.slice(0, at).trimEnd().length);
    const at = held.lastIndexOf(close);
    const behind = at < 0 ? undefined : held.slice(at + close.length).trim();
    if (behind === "" || !ended && behind && CALL.startsWith(behind)) return from(at);
    if (ended) return "";
    const trimmed = held.trimEnd();
    return from(trimmed.length - openTail(trimmed, [close]));
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
