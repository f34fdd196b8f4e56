import type { Body, ChannelFormat } from "./channel_format.ts";
import { GLIMMER_CHANNELS } from "./glimmer_channels.ts";
import { HARMONY_CHANNELS } from "./harmony_channels.ts";
import { firstMark, isBlank, openTail } from "./stop.ts";

/** Formats by name; `Reasoning` holds the name because it is plain data. */
const FORMATS: Readonly<Record<ChannelName, ChannelFormat>> = {
  harmony: HARMONY_CHANNELS,
  glimmer: GLIMMER_CHANNELS,
};

export type ChannelName = "harmony" | "glimmer";

export function channelFormat(name: ChannelName): ChannelFormat {
  return FORMATS[name];
}

/** The format that a chat template writes; undefined where its messages have no such headers. */
export function channelsOf(template: string): ChannelName | undefined {
  const names = Object.keys(FORMATS) as ChannelName[];
  return names.find((name) => {
    const { start, message, headers } = FORMATS[name];
    return [`${start}assistant`, message, headers[0] as string].every((mark) =>
      template.includes(mark)
    );
  });
}

/**
 * Special tokens that decoding keeps in the text, because the parser of messages needs them. They remain control
 * tokens: text that a person writes never becomes one.
 */
export const CHANNEL_TOKENS: readonly string[] = ["<|start|>", "<|channel|>", "<|message|>"];

/** A piece of a message: of its body, or what is before and behind it ("mark"). */
export interface MessagePiece {
  readonly kind: Body["kind"] | "mark";
  /** What it adds to the reasoning or the text. */
  readonly text: string;
  /** The output that it is: joined, these are the whole output. */
  readonly output: string;
}

/** Returns pieces in the output's order: a round's tokens may belong to several messages. */
export interface ChannelStream {
  readonly part: "begin" | "reasoning" | "text";
  push(piece: string): MessagePiece[];
  end(): MessagePiece[];
}

/** Longer than any header. */
const LONGEST_HEADER = 300;

/** The authors of an output's messages. */
const ROLE = "assistant";

/**
 * The header at the beginning of a text, without its role, and the rest after it. "more" while the text may
 * still become a header, "none" as soon as it cannot.
 */
function headerIn(
  text: string,
  { start, message, headers }: ChannelFormat,
): { readonly header: string; readonly rest: string } | "more" | "none" {
  let left = text.trimStart();
  for (const part of [start, ROLE]) {
    if (left.startsWith(part)) left = left.slice(part.length).trimStart();
    else if (part.startsWith(left)) return "more";
  }
  if (left.startsWith(message)) return { header: "", rest: left.slice(message.length) };
  const begins = headers.map((each) => each.trimStart());
  if ([message, ...begins].some((each) => each.startsWith(left))) return "more";
  if (!begins.some((each) => left.startsWith(each))) return "none";
  const at = left.indexOf(message);
  if (at >= 0 && at <= LONGEST_HEADER) {
    return { header: left.slice(0, at), rest: left.slice(at + message.length) };
  }
  return left.length > LONGEST_HEADER + message.length ? "none" : "more";
}

/**
 * Separates the bodies of an output's messages. Bodies of the same kind are joined with an empty line. Output
 * without a header is text.
 *
 * @param answering the prompt has the header of an answer.
 */
export function channelStream(format: ChannelFormat, answering: boolean): ChannelStream {
  const next = `${format.start}${ROLE}`;
  const ends = [next, ...format.ends];
  const openers = [format.start, ...format.headers.map((each) => each.trimStart())];
  let held = "";
  /** Nothing but white space is held, which a header or a body's beginning may follow. */
  let blank = false;
  /** Undefined in a header. */
  let body: Body | undefined = answering ? { kind: "text" } : undefined;
  /** Something of the body has been returned. */
  let begun = answering;
  /** Kinds that an earlier body was of. */
  const earlier = new Set<string>();
  /** Whether the body is a call; undefined while that is not known. */
  let isCall: boolean | undefined = false;
  /** In a call that has a close of its own. */
  let inside = false;
  let pieces: MessagePiece[] = [];

  /** @param output that the piece is: a mark of a call is not in it. */
  function put(kind: Body["kind"], piece: string, output: string = piece): void {
    if (piece === "") return;
    const gap = !begun && earlier.has(kind) ? "\n\n" : "";
    begun = true;
    earlier.add(kind);
    pieces.push({ kind, text: gap + piece, output });
  }

  /** Leaves out the part of `held` before `rest`. */
  function skipTo(rest: string): void {
    const output = held.slice(0, held.length - rest.length);
    if (output !== "") pieces.push({ kind: "mark", text: "", output });
    held = rest;
  }

  /** One step; false where more of the output is needed. */
  function step(ended: boolean): boolean {
    return body === undefined ? readHeader(ended) : readBody(body, ended);
  }

  function readHeader(ended: boolean): boolean {
    if (held.trim() === "") {
      if (ended) skipTo("");
      return false;
    }
    const found = headerIn(held, format);
    if (found === "more" && !ended) return false;
    // A header that is cut off by the end of the output is dropped.
    if (found === "more" && openers.some((opener) => held.trimStart().startsWith(opener))) {
      skipTo("");
      return false;
    }
    if (typeof found === "string") {
      // The start of a message without a header after it is text; it must not be found again as an end.
      const at = held.indexOf(next);
      const skipped = at >= 0 && held.slice(0, at).trim() === "" ? at + next.length : 0;
      [body, begun, isCall, inside] = [{ kind: "text" }, false, false, false];
      put("text", held.slice(0, skipped));
      held = held.slice(skipped);
      return true;
    }
    body = format.bodyOf(found.header);
    skipTo(found.rest);
    [begun, inside] = [false, false];
    isCall = body.within === undefined ? body.around !== undefined : undefined;
    // A call's body may be empty.
    if (isCall) put(body.kind, body.around?.[0] ?? "", "");
    return true;
  }

  function readBody({ kind, around, within: [open, close] = ["", ""] }: Body, ended: boolean) {
    if (isCall === undefined) {
      const start = held.trimStart();
      if (!ended && start.length < open.length && open.startsWith(start)) return false;
      isCall = inside = start.startsWith(open);
      if (isCall) {
        skipTo(start);
        put(kind, around?.[0] ?? "", "");
      }
    }
    return inside ? readCall(kind, close, ended) : readText(kind, around, ended);
  }

  /** Reads a call up to its `close`. An end mark inside the call's arguments does not end the body. */
  function readCall(kind: Body["kind"], close: string, ended: boolean): boolean {
    const at = held.indexOf(close);
    const kept = ended ? 0 : openTail(held, [close]);
    const end = at < 0 ? held.length - kept : at + close.length;
    put(kind, held.slice(0, end));
    held = held.slice(end);
    inside = at < 0;
    return at >= 0;
  }

  function readText(kind: Body["kind"], around: Body["around"], ended: boolean): boolean {
    const found = firstMark(held, ends);
    if (found === undefined) {
      const kept = ended ? 0 : openTail(held, ends);
      put(kind, held.slice(0, held.length - kept));
      held = held.slice(held.length - kept);
      return false;
    }
    put(kind, held.slice(0, found.at));
    if (isCall) put(kind, around?.[1] ?? "", "");
    held = held.slice(found.at);
    skipTo(held.slice(found.mark === next ? 0 : found.mark.length));
    body = undefined;
    return true;
  }

  function taken(ended: boolean): MessagePiece[] {
    while (step(ended));
    const made = pieces;
    pieces = [];
    return made;
  }

  return {
    get part() {
      return body?.kind ?? "begin";
    },
    push(piece) {
      held += piece;
      if (blank && isBlank(piece)) return [];
      const made = taken(false);
      blank = isBlank(held);
      return made;
    },
    end: () => taken(true),
  };
}
