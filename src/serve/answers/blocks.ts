import type { TextLogprobs } from "../../engine/schedule/events.ts";
import type { Piece } from "./answer.ts";

/** A part of an answer: thoughts, text or a call, one after the other. */
export interface Block {
  readonly kind: "reasoning" | "text" | "call";
  /** Name of the function that is called. */
  readonly name: string;
  /** The text; of a call its arguments in JSON. */
  text: string;
  readonly logprobs: TextLogprobs[];
}

/** What happens to the block with this number. */
export interface BlockEvent {
  readonly kind: "open" | "delta" | "close";
  readonly index: number;
  readonly block: Block;
  /** What a delta adds. */
  readonly text: string;
  readonly logprobs: readonly TextLogprobs[];
}

/** Turns an answer's pieces into blocks, for the APIs whose answers are lists of them. */
export interface BlockWriter {
  readonly blocks: readonly Block[];
  write(piece: Piece): BlockEvent[];
}

export function blockWriter(): BlockWriter {
  const blocks: Block[] = [];
  let open = false;
  /** Log-probabilities of tokens whose text has not been written yet. */
  let logprobs: TextLogprobs[] = [];

  function event(
    kind: BlockEvent["kind"],
    text = "",
    tokenLogprobs: BlockEvent["logprobs"] = [],
  ): BlockEvent {
    const block = blocks.at(-1) as Block;
    return { kind, index: blocks.length - 1, block, text, logprobs: tokenLogprobs };
  }

  function close(): BlockEvent[] {
    if (!open) return [];
    open = false;
    return [event("close")];
  }

  function begin(kind: Block["kind"], name = ""): BlockEvent[] {
    if (kind !== "call" && open && blocks.at(-1)?.kind === kind) return [];
    const closed = close();
    blocks.push({ kind, name, text: "", logprobs: [] });
    open = true;
    return [...closed, event("open")];
  }

  function add(text: string): BlockEvent {
    const block = blocks.at(-1) as Block;
    const pending = logprobs;
    logprobs = [];
    block.text += text;
    block.logprobs.push(...pending);
    return event("delta", text, pending);
  }

  return {
    blocks,
    write(piece) {
      switch (piece.kind) {
        case "round":
          logprobs.push(...piece.logprobs);
          return [];
        case "reasoning":
          return [...begin("reasoning"), add(piece.text)];
        case "text":
          return [...begin("text"), add(piece.text)];
        case "call":
          return begin("call", piece.name);
        case "arguments":
          return [add(piece.text)];
        case "called":
        case "end":
          return close();
        case "begin":
          return [];
      }
    },
  };
}
