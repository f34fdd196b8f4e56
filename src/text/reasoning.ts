import { type AnswerMarks, answerMarks, answerStream } from "./answer_marks.ts";
import {
  channelFormat,
  type ChannelName,
  channelsOf,
  type ChannelStream,
  channelStream,
  type MessagePiece,
} from "./channels.ts";
import { isBlank, openTail, type StopScanner, stopScanner } from "./stop.ts";

/** What begins and ends the reasoning in front of an answer. */
export interface ReasoningMarks {
  readonly open: string;
  readonly close: string;
  /** Texts, besides white space, that may follow `open` at the end of a prompt. */
  readonly begun?: readonly string[];
  /** Special tokens in them, where these are not the marks themselves. */
  readonly tokens?: readonly string[];
  /** Tokens that end an output, whatever the checkpoint's files say. */
  readonly stops?: readonly string[];
}

/** Marks by family; a checkpoint has the first ones that its vocabulary knows. */
export const REASONING_MARKS: readonly ReasoningMarks[] = [
  // Qwen3 to 3.8, QwQ, DeepSeek R1 and V3.1, GLM, Laguna, SmolLM3, Olmo 3, EXAONE 4, LFM2.5, Phi-4 reasoning
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" }, // Magistral, Ministral 3
  // Seed-OSS; a budget of 0 opens and ends with a remark about it.
  { open: "<seed:think>", close: "</seed:think>", begun: ["<seed:cot_budget_reflect>"] },
  // Gemma 4. Of its channels only this one is written.
  {
    open: "<|channel>thought",
    close: "<channel|>",
    tokens: ["<|channel>", "<channel|>"],
    // A call ends with the beginning of its result.
    stops: ["<turn|>", "<|tool_response>"],
  },
];

/**
 * The beginning of a call, which ends reasoning that the model forgot to close; it is part of the answer. All of it
 * must match, because reasoning may mention calls.
 */
export interface CallBeginning {
  readonly begin: string;
  /** Behind `begin` there must be a name and one of these. */
  readonly named?: readonly string[];
}

/** Beginnings of calls, each with the texts by which templates are known to write such calls. */
const CALLS: readonly (CallBeginning & { readonly known: readonly string[] })[] = [
  // Qwen3-Coder, Qwen3.5 to 3.8
  { known: ["<tool_call>", "<function="], begin: "<tool_call>\n<function=" },
  { known: ["<seed:tool_call>"], begin: "<seed:tool_call>\n<function=" },
  // GLM, Laguna
  {
    known: ["<tool_call>", "<arg_key>"],
    begin: "<tool_call>",
    named: ["<arg_key>", "</tool_call>"],
  },
  { known: ["[TOOL_CALLS]"], begin: "[TOOL_CALLS]" }, // Mistral
  { known: ["<|tool_call>call:"], begin: "<|tool_call>call:" }, // Gemma 4
  { known: ["<|tool_call_start|>"], begin: "<|tool_call_start|>[" }, // LFM2.5
  { known: ["<｜tool▁calls▁begin｜>"], begin: "<｜tool▁calls▁begin｜>" }, // DeepSeek
];

/** The variables with which templates ask whether to think. */
const SWITCHES = [
  "enable_thinking", // Qwen3, GLM, Laguna, SmolLM3, Gemma 4, EXAONE 4
  "thinking", // DeepSeek-V3.1, Granite, Kimi
];

/** How a checkpoint reasons. Plain data. */
export interface Reasoning {
  /** Undefined where its output has no such part, or channels. */
  readonly marks: ReasoningMarks | undefined;
  /** Token ids at the end of prompts whose template has opened the reasoning already. */
  readonly openings: readonly (readonly number[])[];
  /** Token ids at the end of prompts whose template has closed it; absent where there are no marks. */
  readonly closing?: readonly number[];
  /** The template asks whether to think. */
  readonly switchable: boolean;
  /** Reasoning, text and calls are messages of their own. */
  readonly channels?: {
    readonly name: ChannelName;
    /** Ids of the tokens that begin a message and end its header. */
    readonly start: number;
    readonly message: number;
  };
  /** What ends reasoning that has not been closed. */
  readonly break?: CallBeginning;
  /** Marks around the answer, which are left out of it. */
  readonly answer?: AnswerMarks;
  /** Ids of tokens that end an output, besides the checkpoint's. */
  readonly stops?: readonly number[];
}

/** The fields that are needed to separate an output. */
export type ReasoningParts = Pick<
  Reasoning,
  "marks" | "openings" | "closing" | "channels" | "break" | "answer"
>;

/** The part of a tokenizer that `reasoningOf` needs. */
interface Vocabulary {
  encode(text: string, options: { readonly addSpecialTokens: boolean }): number[];
  idOf(token: string): number | undefined;
}

/** @param template undefined for a base model. */
export function reasoningOf(
  tokenizer: Vocabulary,
  template: string | undefined,
): Reasoning {
  const switchable = [...SWITCHES, ...Object.keys(OFF)].some((name) =>
    isAsked(template ?? "", name)
  );
  const channels = channelsIn(tokenizer, template);
  const idsOf = (tokens: readonly string[] = []) => {
    const ids = tokens.map((token) => tokenizer.idOf(token)).filter((id) => id !== undefined);
    return ids.length === 0 ? {} : { stops: ids };
  };
  if (channels !== undefined) {
    const { stops } = channelFormat(channels.name);
    return { marks: undefined, openings: [], switchable, channels, ...idsOf(stops) };
  }
  const knows = (mark: string) => tokenizer.idOf(mark) !== undefined || template?.includes(mark);
  const marks = REASONING_MARKS.find(({ open, close }) => knows(open) && knows(close));
  if (marks === undefined) return { marks, openings: [], switchable };
  const encode = (text: string) => tokenizer.encode(text, { addSpecialTokens: false });
  const openings = ["", "\n", "\n\n", ...marks.begun ?? []].map((begun) =>
    encode(`${marks.open}${begun}`)
  );
  const closing = encode(marks.close);
  const call = CALLS.find(({ known }) => known.every((text) => template?.includes(text)));
  const answer = answerMarks((text) => knows(text) === true);
  return {
    marks,
    openings,
    closing,
    switchable,
    ...call && { break: call },
    ...answer && { answer },
    ...idsOf(marks.stops),
  };
}

/** Does a template read the variable? Fields of messages may have the same name. */
function isAsked(template: string, name: string): boolean {
  const asked = name.includes("_")
    ? `\\b${name}\\b`
    : `\\b(?:if|elif|set|not)\\s+${name}\\b|(?<![.\\w'"])${name}\\s+is\\b`;
  return new RegExp(asked).test(template);
}

function channelsIn(tokenizer: Vocabulary, template: string | undefined): Reasoning["channels"] {
  const name = template === undefined ? undefined : channelsOf(template);
  if (name === undefined) return undefined;
  const format = channelFormat(name);
  const [start, message] = [tokenizer.idOf(format.start), tokenizer.idOf(format.message)];
  return start === undefined || message === undefined ? undefined : { name, start, message };
}

/** Template variables for thinking or not; "auto" leaves it to the template. */
export function thinkArguments(think: "on" | "off" | "auto"): Record<string, boolean> {
  if (think === "auto") return {};
  return Object.fromEntries(SWITCHES.map((name) => [name, think === "on"]));
}

/** The variable that turns reasoning off in templates without such a switch: Seed-OSS's budget of tokens. */
const OFF = { thinking_budget: 0 } as const;

/** A template's variables with those that follow from a switch that is off. */
export function withBudget(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return given["enable_thinking"] === false ? { ...OFF, ...given } : { ...given };
}

/** A piece of an output's reasoning or of its text. */
export interface SeparatedPiece {
  readonly kind: "reasoning" | "text";
  readonly text: string;
}

/** A whole output, parted. */
export interface SeparatedText {
  readonly reasoning: string;
  readonly text: string;
}

/** The current part of an output: before any text, reasoning, after the reasoning, or the answer. */
type Part = "begin" | "reasoning" | "gap" | "text";

/** Parts an output that arrives in pieces. */
export interface ReasoningStream {
  /** The part that the last piece belongs to. */
  readonly part: Part;
  /** Whether no more reasoning can come. */
  readonly over: boolean;
  /** Returns what is certain, in the output's order; no piece is empty. */
  push(piece: string): SeparatedPiece[];
  /** Called when the output ends; returns the text that was held back. */
  end(): SeparatedPiece[];
}

/**
 * Separates reasoning from the answer. Reasoning is the text between the marks at the beginning of an
 * output, or from its beginning where the prompt opened it (`openings`); marks further on are text.
 * White space around reasoning, the empty lines before the answer, also where the prompt closed the reasoning (Laguna),
 * and marks around the answer (`answer`) are left out. The result does not depend on how the output is cut.
 */
export function reasoningStream(
  { answer, ...parts }: ReasoningParts,
  promptIds: readonly number[],
): ReasoningStream {
  const stream = separatedStream(parts, promptIds);
  if (answer === undefined) return stream;
  const inner = answerStream(answer);
  const unmarked = (pieces: readonly SeparatedPiece[]) =>
    pieces.flatMap(({ kind, text }) =>
      kind === "reasoning" ? [{ kind, text }] : nonEmpty("", inner.push(text))
    );
  return {
    get part() {
      return stream.part;
    },
    get over() {
      return stream.over;
    },
    push: (piece) => unmarked(stream.push(piece)),
    end: () => [...unmarked(stream.end()), ...nonEmpty("", inner.end())],
  };
}

/** Separates reasoning from an answer that keeps the marks around it. */
function separatedStream(
  { marks, openings, closing, channels, break: breaks }: Omit<ReasoningParts, "answer">,
  promptIds: readonly number[],
): ReasoningStream {
  if (channels !== undefined) {
    const stream = openChannels(channels, promptIds);
    const bodies = (pieces: readonly MessagePiece[]) =>
      pieces.flatMap(({ kind, text }) => kind === "mark" ? [] : [{ kind, text }]);
    return {
      get part() {
        return stream.part;
      },
      over: false,
      push: (piece) => bodies(stream.push(piece)),
      end: () => bodies(stream.end()),
    };
  }
  if (marks === undefined) {
    return { part: "text", over: true, push: (text) => nonEmpty("", text), end: () => [] };
  }
  const { open, close } = marks;
  const endsWith = (ids: readonly number[]) =>
    ids.every((id, i) => id === promptIds.at(i - ids.length));
  const opened = openings.some(endsWith);
  const closedByPrompt = closing !== undefined && endsWith(closing);
  let part: Part = "begin";
  let held = "";
  let begun = false;
  /** Nothing but white space is held. */
  let blank = false;

  /** Takes the part of `held` that is certainly reasoning; the rest stays held. */
  function takeReasoning(ended: boolean): string {
    const closed = held.indexOf(close);
    const call = breaks && callIn(closed < 0 ? held : held.slice(0, closed), breaks);
    const broken = call?.isWhole ? call.at : undefined;
    const at = broken ?? closed;
    const ends = breaks === undefined ? [close] : [close, breaks.begin];
    const sure = Math.min(call?.at ?? Infinity, held.length - openTail(held, ends));
    const end = at >= 0 ? at : ended ? held.length : sure;
    const whole = held.slice(0, end);
    const shown = begun ? whole.trimEnd() : whole.trim();
    begun ||= shown !== "";
    const rest = at >= 0
      ? held.slice(broken ?? at + close.length)
      : held.slice(whole.trimEnd().length);
    held = rest;
    if (at >= 0) part = "gap";
    return shown;
  }

  function take(ended: boolean): SeparatedPiece[] {
    let reasoning = "";
    if (part === "begin") {
      const start = held.trimStart();
      if (start.startsWith(open)) {
        held = start.slice(open.length);
        part = "reasoning";
      } else if (ended || !open.startsWith(start)) {
        part = opened ? "reasoning" : "text";
        if (closedByPrompt) held = withoutEmptyLines(held);
      }
    }
    if (part === "reasoning") reasoning = takeReasoning(ended);
    if (part === "gap" && held.trim() !== "") {
      held = withoutEmptyLines(held);
      part = "text";
    }
    if (part !== "text") return nonEmpty(reasoning, "");
    const text = held;
    held = "";
    return nonEmpty(reasoning, text);
  }

  return {
    get part() {
      return part;
    },
    get over() {
      return part === "gap" || part === "text";
    },
    push(piece) {
      held += piece;
      // Looking at all of it again for each new line would take quadratic time where a model writes nothing else.
      if (blank && isBlank(piece)) return [];
      const pieces = take(false);
      blank = isBlank(held);
      return pieces;
    },
    end: () => take(true),
  };
}

/** The text without the empty lines at its beginning. */
function withoutEmptyLines(text: string): string {
  return text.replace(/^\s*\n/, "");
}

function openChannels(
  { name, start, message }: NonNullable<Reasoning["channels"]>,
  promptIds: readonly number[],
): ChannelStream {
  const answering = promptIds.lastIndexOf(message) > promptIds.lastIndexOf(start);
  return channelStream(channelFormat(name), answering);
}

/** A scanner for stop texts in the bodies of an output's messages: their headers are no text of the model's. */
export function bodyStopScanner(
  stops: readonly string[],
  { channels }: ReasoningParts,
  promptIds: readonly number[],
): StopScanner {
  const scanner = stopScanner(stops);
  if (channels === undefined || stops.length === 0) return scanner;
  const stream = openChannels(channels, promptIds);
  let stop: string | undefined;

  function scanned(pieces: readonly MessagePiece[]): string {
    return pieces.map(({ kind, output }) => {
      if (stop !== undefined) return "";
      if (kind === "mark") return scanner.end() + output;
      const found = scanner.push(output);
      stop = found.stop;
      return found.text;
    }).join("");
  }

  return {
    push: (piece) => ({ text: scanned(stream.push(piece)), stop }),
    end: () => scanned(stream.end()) + scanner.end(),
  };
}

function nonEmpty(reasoning: string, text: string): SeparatedPiece[] {
  const pieces: SeparatedPiece[] = [{ kind: "reasoning", text: reasoning }, { kind: "text", text }];
  return pieces.filter((piece) => piece.text !== "");
}

/** The pieces of each kind, joined. */
export function joinedPieces(pieces: readonly SeparatedPiece[]): SeparatedText {
  const of = (kind: SeparatedPiece["kind"]) =>
    pieces.filter((piece) => piece.kind === kind).map(({ text }) => text).join("");
  return { reasoning: of("reasoning"), text: of("text") };
}

/** Where a text first has the beginning of a call. `isWhole`: no more of the text can make it something else. */
function callIn(
  text: string,
  { begin, named }: CallBeginning,
): { readonly at: number; readonly isWhole: boolean } | undefined {
  for (let at = text.indexOf(begin); at >= 0; at = text.indexOf(begin, at + 1)) {
    if (named === undefined) return { at, isWhole: true };
    const rest = text.slice(at + begin.length);
    const [before = "", name = ""] = NAME.exec(rest) ?? [];
    const tag = rest.slice(before.length);
    const isWhole = name !== "" && named.some((each) => tag.startsWith(each));
    if (isWhole || named.some((each) => each.startsWith(tag))) return { at, isWhole };
  }
  return undefined;
}

/** A function's name, or its beginning. */
const NAME = /^\s*([\p{L}\p{N}_.:-]{0,64})\s*/u;

/** Counts the tokens of an output that reason, both marks included. */
export interface ReasoningCounter {
  readonly tokens: number;
  /** Whether no token to come counts. */
  readonly over: boolean;
  /** Takes what the next token adds to the text. */
  push(piece: string): void;
}

export function reasoningCounter(
  reasoning: ReasoningParts,
  promptIds: readonly number[],
): ReasoningCounter {
  const stream = reasoningStream(reasoning, promptIds);
  /** The number of reasoning tokens, and of later tokens whose part is not known yet. */
  let [tokens, pending] = [0, 0];
  return {
    get tokens() {
      return tokens;
    },
    get over() {
      return stream.over;
    },
    push(piece) {
      if (stream.over) return;
      const before = stream.part;
      pending++;
      const hasReasoned = stream.push(piece).some(({ kind }) => kind === "reasoning");
      const { part } = stream;
      // The token that completes the closing mark is the last one.
      if (part === "reasoning" || part === "gap" || before === "reasoning" || hasReasoned) {
        tokens += pending;
        pending = 0;
      } else if (part === "text") pending = 0;
    },
  };
}

/** Parts a whole output. */
export function partReasoning(
  output: string,
  reasoning: ReasoningParts,
  promptIds: readonly number[],
): SeparatedText {
  const stream = reasoningStream(reasoning, promptIds);
  return joinedPieces([...stream.push(output), ...stream.end()]);
}
