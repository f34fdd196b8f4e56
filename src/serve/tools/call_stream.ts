import { firstMark, isBlank, openTail } from "../../text/stop.ts";
import type { BodyReader } from "./body.ts";
import type { Tool } from "./tool.ts";

/** How calls are marked in an output. */
export interface CallFormat {
  /** Marks: the body of a call follows a "call" mark; a "drop" mark is removed from the text. */
  readonly marks: Readonly<Record<string, "call" | "drop">>;
  /** Texts that are dropped where they follow a call, as white space is. */
  readonly after: readonly string[];
  /** Matches where a further call begins directly after a call; absent: only a mark begins one. */
  readonly listed?: RegExp;
  /** Those of `after` that end a list. */
  readonly closes?: readonly string[];
  /** An output that begins with a brace is a call, if it turns out to be one. */
  readonly bare: boolean;
  /** @param call.mark that the body follows; "" behind another call or at an output's beginning. */
  readonly body: (call: { readonly mark: string; readonly tools: readonly Tool[] }) => BodyReader;
}

/** A piece of an output: text, or a part of a call. */
export type ToolPiece =
  | { readonly kind: "text"; readonly text: string }
  /** A call begins: number `index` of the answer. */
  | { readonly kind: "call"; readonly index: number; readonly name: string }
  /** A part of the arguments' JSON. */
  | { readonly kind: "arguments"; readonly index: number; readonly text: string }
  /** The call is over. `broken`: its arguments are not whole. */
  | { readonly kind: "called"; readonly index: number; readonly broken?: true };

/** Splits an output that arrives in pieces into text and calls. Where the pieces are cut makes no difference. */
export interface CallStream {
  push(piece: string): ToolPiece[];
  /**
   * The output has ended: returns the text that was held back.
   *
   * @param isCut by a limit or a stop text, not by the model: the beginning of a call is then dropped.
   */
  end(isCut: boolean): ToolPiece[];
}

/**
 * Separates calls from text. White space around calls is dropped. Output that looked like a call but is
 * none becomes text.
 *
 * @param tools that may be called.
 */
export function callStream(format: CallFormat, tools: readonly Tool[] = []): CallStream {
  const marks = Object.keys(format.marks).toSorted((a, b) => b.length - a.length);
  const after = format.after.toSorted((a, b) => b.length - a.length);
  let state: "start" | "text" | "body" | "after" = "start";
  /** Output that has not been split yet. */
  let held = "";
  /** White space that is text only if text follows. */
  let space = "";
  let body: BodyReader | undefined;
  /** The mark and the body's text so far: they become text if the body turns out to be no call. */
  let raw = "";
  let index = -1;
  let named = false;
  /** The next call may follow without a mark. */
  let listing = false;
  /** The call follows a mark. */
  let marked = false;
  let pieces: ToolPiece[] = [];

  function text(piece: string): void {
    if (isBlank(piece)) {
      space += piece;
      return;
    }
    const whole = space + piece;
    const kept = whole.trimEnd();
    space = whole.slice(kept.length);
    if (kept !== "") pieces.push({ kind: "text", text: kept });
  }

  function begin(mark: string): void {
    [state, raw, named, listing] = ["body", mark, false, true];
    body = format.body({ mark, tools });
    marked = format.marks[mark] === "call";
  }

  function collect(): void {
    for (const event of body?.take() ?? []) {
      if (event.kind === "name") {
        [named, space] = [true, ""];
        pieces.push({ kind: "call", index: ++index, name: event.name });
      } else pieces.push({ kind: "arguments", index, text: event.text });
    }
  }

  /** One step; false where more of the output is needed. */
  function step(ended: boolean): boolean {
    if (held === "") return false;
    if (state === "body") return readBody();
    if (state === "start") return start();
    if (state === "after") return skip(ended);
    return readText(ended);
  }

  function start(): boolean {
    const trimmed = held.trimStart();
    space += held.slice(0, held.length - trimmed.length);
    held = trimmed;
    if (held === "") return false;
    state = "text";
    if (format.bare && held.startsWith("{")) begin("");
    return true;
  }

  function readBody(): boolean {
    for (let i = 0; i < held.length; i++) {
      const result = (body as BodyReader).push(held[i] as string);
      if (result === "more") continue;
      const end = result === "over" ? i : i + 1;
      const read = held.slice(0, end);
      held = held.slice(end);
      collect();
      body = undefined;
      // A call whose name was sent cannot be taken back; anything else becomes text.
      state = named ? "after" : "text";
      if (!named) text(raw + read);
      else pieces.push({ kind: "called", index, ...result === "bad" && { broken: true } });
      return true;
    }
    raw += held;
    held = "";
    collect();
    return false;
  }

  function skip(ended: boolean): boolean {
    held = held.trimStart();
    const dropped = after.find((each) => held.startsWith(each));
    if (dropped !== undefined) {
      held = held.slice(dropped.length);
      if (format.closes?.includes(dropped)) listing = false;
    } else if (listing && format.listed?.test(held)) begin("");
    else if (ended || ![...after, ...marks].some((each) => each.startsWith(held))) state = "text";
    else return false;
    return true;
  }

  function readText(ended: boolean): boolean {
    const found = firstMark(held, marks);
    if (found !== undefined) {
      text(held.slice(0, found.at));
      held = held.slice(found.at + found.mark.length);
      if (format.marks[found.mark] === "call") begin(found.mark);
      return true;
    }
    const kept = ended ? 0 : openTail(held, marks);
    text(held.slice(0, held.length - kept));
    held = held.slice(held.length - kept);
    return false;
  }

  function taken(ended: boolean): ToolPiece[] {
    while (step(ended));
    const made = pieces;
    pieces = [];
    return made;
  }

  return {
    push(piece) {
      held += piece;
      return taken(false);
    },
    end(isCut) {
      const made = taken(true);
      if (state !== "body") {
        const rest = space + held;
        return index < 0 && rest !== "" ? [...made, { kind: "text", text: rest }] : made;
      }
      if (!isCut && body?.end?.()) {
        collect();
        return [...made, ...taken(true), { kind: "called", index }];
      }
      // Without a mark what is cut may be JSON, and is text.
      if (named || isCut && marked) return made;
      return [...made, { kind: "text", text: space + raw }];
    },
  };
}
